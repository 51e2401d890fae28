"""An app whose events are counted, as docs/how-to/observe.md shows it."""

from collections import Counter

from perdure import App, Event, Think

counts: Counter[str] = Counter()


def count(event: Event) -> None:
    counts[event.type] += 1


class Assistant(Think):
    model = "demo"


app = App(Assistant, on_event=count)
