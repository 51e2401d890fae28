"""A conversation that some may only watch, as docs/how-to/secure.md shows it."""

from perdure import App, Connection, Think


class Clinic(Think):
    model = "demo"

    def is_readonly(self, connection: Connection) -> bool:
        return connection.request.query.get("role") == "viewer"

    def accepts_chat_frame(self, connection: Connection, kind: str) -> bool:
        if kind == "approval":
            return connection.request.query.get("role") == "doctor"
        return not connection.readonly


app = App(Clinic)
