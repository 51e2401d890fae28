"""An app with its own paths, as docs/how-to/serve.md shows it."""

from perdure import App, IncomingRequest, Think


class Assistant(Think):
    model = "demo"


def route(request: IncomingRequest):
    """Everyone talks to an assistant of their own at /user."""
    if request.path == "/user" or request.path.startswith("/user/"):
        return Assistant, request.headers.get("x-user", "guest")
    return None


app = App(Assistant, prefix="api/v1", route=route)
