"""The snippets of docs/how-to/approvals.md."""

from starlette.requests import Request
from starlette.responses import JSONResponse

from perdure import InvalidToolInput, Think, ToolContext, client_tool, tool

FILES = {"/tmp/notes", "/important/plan"}


# ── asking ──
@tool(needs_approval=lambda path: path.startswith("/important/"))
async def delete_file(path: str) -> dict:
    """Delete a file."""
    FILES.discard(path)
    return {"deleted": path}


# ── with the agent ──
class Treasurer(Think):
    model = "demo"
    limit = 1000

    def get_tools(self):
        return [delete_file, self.pay, pick_card]

    async def _is_large(self, amount: float, context: ToolContext) -> bool:
        return amount > self.limit

    @tool(needs_approval=_is_large)
    async def pay(self, to: str, amount: float) -> str:
        """Pay somebody."""
        return f"{to} got {amount}."


# ── in the browser ──
pick_card = client_tool("pick_card", "Have the user pick a payment card.", needs_approval=True)


# ── a webhook ──
class Clerk(Treasurer):
    approval_ttl = 24 * 60 * 60

    async def on_request(self, request: Request) -> JSONResponse:
        if request.method == "GET":
            waiting = self.pending_approvals()
            return JSONResponse([{"id": p.tool_call_id, "tool": p.tool_name, "input": p.input} for p in waiting])
        answer = await request.json()
        try:
            if answer["approved"]:
                taken = await self.approve(answer["id"], answer.get("input"))
            else:
                taken = await self.reject(answer["id"], answer.get("reason"))
        except InvalidToolInput as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse({"taken": taken})
