"""The agents of docs/how-to/message-concurrency.md."""

from perdure import App, Debounce, Think


class Search(Think):
    model = "demo"
    message_concurrency = "latest"


class Editor(Think):
    model = "demo"
    message_concurrency = "merge"


class Form(Think):
    model = "demo"
    message_concurrency = Debounce(ms=1000)


class Checkout(Think):
    model = "demo"
    message_concurrency = "drop"


class Helpdesk(Think):
    model = "demo"

    def on_start(self):
        if self.name.startswith("public-"):
            self.message_concurrency = "drop"


app = App(Search, Editor, Form, Checkout, Helpdesk)
