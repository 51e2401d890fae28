"""An agent that answers HTTP requests, as docs/how-to/serve.md shows it."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from perdure import App, Think


class Notes(Think):
    model = "demo"
    initial_state = {"notes": []}

    async def on_request(self, request: Request) -> Response:
        if request.path_params["path"] == "notes" and request.method == "POST":
            self.set_state({"notes": [*self.state["notes"], await request.json()]})
            return JSONResponse(self.state["notes"], status_code=201)
        return await super().on_request(request)


app = App(Notes)
