"""Pages at the other end of slow lines: whatever crosses, what they are sent of a stream has no gap."""

from __future__ import annotations

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from perdure.chat.handshake import Handshake, Idle, Pending, Resuming

Frame = tuple[str, str, int]
"""Kind, stream, number."""


class Page:
    """What the published hook does: it asks while it follows no stream, and acks each offer once, or again when it has
    asked."""

    def __init__(self) -> None:
        self.coming: deque[Frame] = deque()
        self.going: deque[tuple[str, str]] = deque()
        self.asks = False
        self.acked: set[str] = set()
        self.follows: str | None = None
        """The stream that it has taken up and not seen the end of."""
        self.last: dict[str, int] = {}
        """Number of the last chunk, for each stream."""

    def ask(self) -> None:
        self.asks = True
        self.going.append(("probe", ""))

    def read(self) -> None:
        kind, stream, number = self.coming.popleft()
        match kind:
            case "offer":
                if self.asks or stream not in self.acked:
                    self.asks = False
                    self.acked.add(stream)
                    self.follows = stream
                    self.going.append(("ack", stream))
            case "none":
                self.asks = False
            case "end":
                self.follows = None if self.follows == stream else self.follows
            case "replay":
                self.last[stream] = number
            case "chunk":
                assert number == self.last.get(stream, -1) + 1, f"{stream}: {number} follows {self.last.get(stream)}"
                self.last[stream] = number


class Crossings(RuleBasedStateMachine):
    """One agent, its pages, and what is on its way between them."""

    def __init__(self) -> None:
        super().__init__()
        self.handshake: Handshake[int] = Handshake()
        self.pages: dict[int, Page] = {}
        self.waiting: deque[str] = deque()
        self.streaming: str | None = None
        self.chunks = 0
        self.names = (f"R{number}" for number in range(1, 1_000))
        self.peers = iter(range(1_000))

    def page(self, data: st.DataObject, kind: str) -> tuple[int, Page]:
        able = {peer: page for peer, page in self.pages.items() if getattr(page, kind)}
        peer = data.draw(st.sampled_from(sorted(able)))
        return peer, able[peer]

    def greet(self, page: Page, greeting: Resuming | Pending | Idle) -> None:
        match greeting:
            case Resuming(id=stream):
                page.coming.append(("offer", stream, 0))
            case Idle():
                page.coming.append(("none", "", 0))
            case Pending():
                pass

    # the pages

    @precondition(lambda self: len(self.pages) < 3)
    @rule(asks=st.sampled_from([True, True, False]))
    def connect(self, asks: bool) -> None:
        peer, page = next(self.peers), Page()
        self.pages[peer] = page
        greeting = self.handshake.connected(peer)
        if not isinstance(greeting, Idle):
            self.greet(page, greeting)
        if asks:
            page.ask()

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        _, page = self.page(data, "__init__")
        if not page.asks and page.follows is None:
            page.ask()

    @precondition(lambda self: any(page.coming for page in self.pages.values()))
    @rule(data=st.data(), most=st.integers(1, 4))
    def read(self, data: st.DataObject, most: int) -> None:
        _, page = self.page(data, "coming")
        for _ in range(min(most, len(page.coming))):
            page.read()

    @precondition(lambda self: any(page.going for page in self.pages.values()))
    @rule(data=st.data(), most=st.integers(1, 3))
    def arrive(self, data: st.DataObject, most: int) -> None:
        """Something of a page reaches the server, while the stream goes on."""
        peer, page = self.page(data, "going")
        for _ in range(min(most, len(page.going))):
            kind, stream = page.going.popleft()
            if kind == "probe":
                self.greet(page, self.handshake.probed(peer))
            else:
                answer = self.handshake.acked(peer, stream)
                if answer == "live":
                    page.coming.extend(("replay", stream, number) for number in range(self.chunks))
                elif answer != "nothing":
                    page.coming.append(("end", stream, 0))
            if self.streaming is not None:
                self.chunk(1)

    # the turns

    @rule()
    def accept(self) -> None:
        turn = next(self.names)
        self.waiting.append(turn)
        self.handshake.accepted(turn)

    @precondition(lambda self: self.waiting and self.streaming is None)
    @rule()
    def start(self) -> None:
        self.streaming, self.chunks = self.waiting.popleft(), 0
        for peer in self.handshake.streaming(self.streaming):
            self.pages[peer].coming.append(("offer", self.streaming, 0))

    @precondition(lambda self: self.streaming is not None)
    @rule(count=st.integers(1, 3))
    def chunk(self, count: int) -> None:
        for _ in range(count):
            for peer in self.handshake.listeners:
                self.pages[peer].coming.append(("chunk", self.streaming or "", self.chunks))
            self.chunks += 1

    @rule()
    def go_on_to_the_next(self) -> None:
        """The moment at which most crosses: one stream has just ended, another has begun."""
        self.accept()
        if self.streaming is not None:
            self.end(failed=False)
        self.start()
        self.chunk(1)

    @precondition(lambda self: self.streaming is not None)
    @rule(failed=st.booleans())
    def end(self, failed: bool) -> None:
        turn, self.streaming = self.streaming or "", None
        self.handshake.stream_ended()
        for peer in self.handshake.listeners:
            self.pages[peer].coming.append(("end", turn, 0))
        for peer in self.handshake.settled(turn, failed=failed):
            self.pages[peer].coming.append(("offer", turn, 0) if failed else ("none", "", 0))


Crossings.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None)
TestCrossings = Crossings.TestCase
