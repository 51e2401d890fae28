"""A desk and its researchers, as docs/how-to/sub-agents.md shows them."""

from datetime import UTC, datetime

from perdure import App, ClientToolCall, Refuse, Think, callable, tool


class Researcher(Think):
    model = "demo"
    system_prompt = "You find things out."

    async def found(self) -> int:
        return sum(message["role"] == "assistant" for message in self.messages)


class Desk(Think):
    model = "demo"

    @tool
    async def research(self, topic: str) -> str:
        """Have a researcher look into a topic."""
        researcher = await self.sub_agent(Researcher, topic)
        result = await researcher.chat(f"What is there to know about {topic}?")
        return "".join(part.get("text", "") for part in result.message["parts"])

    def get_tools(self):
        return [self.research]

    @callable
    async def overview(self) -> dict[str, int]:
        topics = [info.name for info in await self.list_sub_agents(Researcher)]
        return {topic: await (await self.sub_agent(Researcher, topic)).found() for topic in topics}

    @callable
    async def forget(self, topic: str) -> None:
        await self.delete_sub_agent(Researcher, topic)

    async def on_before_sub_agent(self, request, kind, name):
        if not await self.has_sub_agent(Researcher, name):
            return Refuse(404)


app = App(Desk, sub_agents=[Researcher])


def here(call: ClientToolCall) -> dict[str, str]:
    return {"desk": "front", "time": datetime.now(UTC).isoformat()}


async def ask(desk: Desk, topic: str, question: str) -> str:
    researcher = await desk.sub_agent(Researcher, topic)
    where = {"name": "where_am_i", "description": "Where and when the question is asked.", "parameters": {}}
    result = await researcher.chat(question, client_tools=[where], on_client_tool_call=here)
    return result.text


async def read_aloud(desk: Desk, topic: str) -> str:
    said = ""
    researcher = await desk.sub_agent(Researcher, topic)
    async for chunk in researcher.stream("Go on."):
        if chunk["type"] == "text-delta":
            said += chunk["delta"]
    return said
