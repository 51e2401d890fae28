"""One agent for each way to treat messages that come while an answer is being made: send several, and compare.

Serve them with ``APP=examples.strategies:app scripts/serve``; the page chooses the agent at its top. The built-in
demo model answers, which is no AI and needs no key.
"""

from perdure import App, Debounce, Think


class Queue(Think):
    """Answers each message, one after the other. The default."""

    model = "demo"
    message_concurrency = "queue"


class Latest(Think):
    """Answers the newest of those that waited. The others stay in the conversation, but no model ever sees them."""

    model = "demo"
    message_concurrency = "latest"


class Merge(Think):
    """Answers all that waited in one turn: the model sees them all."""

    model = "demo"
    message_concurrency = "merge"


class Drop(Think):
    """Takes no message while it answers."""

    model = "demo"
    message_concurrency = "drop"


class Debounced(Think):
    """Answers the newest of those that waited, once it has been quiet for a second."""

    model = "demo"
    message_concurrency = Debounce(ms=1000)


app = App(Queue, Latest, Merge, Drop, Debounced)
