"""An app that people sign in to, as docs/how-to/secure.md shows it."""

from perdure import App, Connection, IncomingRequest, Refuse, Think

TOKENS = {"t0ps3cret": "ada"}


async def sign_in(request: IncomingRequest) -> IncomingRequest | Refuse:
    """Who comes is known by a token, and gets into agents of their own only."""
    user = TOKENS.get(request.query.get("token", ""))
    if user is None:
        return Refuse(401, "Sign in first.")
    if request.agent_name != user:
        return Refuse(403, "This chat is somebody else's.")
    return request.with_headers({"x-user": user})


class Assistant(Think):
    model = "demo"

    def is_readonly(self, connection: Connection) -> bool:
        return connection.request.headers["x-user"] != self.name


app = App(Assistant, on_before_connect=sign_in, on_before_request=sign_in)
