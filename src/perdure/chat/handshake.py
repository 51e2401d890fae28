"""Who is told what about the stream that runs: offers, replays, and who must wait (reference: protocol §9).

Keeps, for one agent, which connections were offered a stream and have not taken it up (they get no chunks: the replay
brings them), which wait for an accepted turn or a continuation to start streaming, and which failed turn is still to be
shown to clients that were away. A continuation belongs to the connection that answered last. Generic in the connection,
which only needs to be hashable. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Literal, TypeVar

import msgspec

__all__ = ["REMEMBERED", "Greeting", "Handshake", "Idle", "Pending", "Replay", "Resuming", "Taken"]

P = TypeVar("P", bound=Hashable)


class Resuming(msgspec.Struct, frozen=True):
    """Offer this stream."""

    id: str


class Pending(msgspec.Struct, frozen=True):
    """A turn is accepted, its stream has not started: keep waiting."""

    id: str


class Taken(msgspec.Struct, frozen=True):
    """A continuation streams that belongs to another connection; this one gets its chunks as they are."""


class Idle(msgspec.Struct, frozen=True):
    """Nothing runs, waits, or is left to be shown."""


Greeting = Resuming | Pending | Taken | Idle


class _Continuation(Generic[P]):
    """A continuation that somebody asked for: its connection, and who else asked or waits for it."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.owner: P | None = None
        """``None`` once its connection is gone, and when the server's own code asked."""
        self.awaited: dict[P, None] = {}
        self.admitted = False
        """Whether its turn has been accepted; until then other calls may have to be answered first."""


REMEMBERED = 8
"""How many offers of one connection are remembered that it has not answered."""

Replay = Literal["live", "failed", "over", "nothing"]
"""What to replay after an ack: the running stream, then live chunks; the failed stream, then its error; only that the
stream is over; nothing at all."""


class Handshake(Generic[P]):
    """The state of all connections of one agent with regard to its streams."""

    def __init__(self, failed: str | None = None) -> None:
        self._streaming: str | None = None
        self._failed = failed
        # Accepted requests that are not over, in order of arrival (a dict for its order).
        self._accepted: dict[str, None] = {}
        self._peers: dict[P, None] = {}
        self._offered: set[P] = set()
        self._unanswered: dict[P, list[str]] = {}
        """What connections were offered and have not acked, oldest first: the ack may be on its way."""
        self._parked: set[P] = set()
        self._next: _Continuation[P] | None = None
        """The continuation that is to come."""
        self._current: _Continuation[P] | None = None
        """The one that streams."""
        self._listeners: tuple[P, ...] | None = ()

    @property
    def everyone(self) -> tuple[P, ...]:
        """All connections, in order of arrival."""
        return tuple(self._peers)

    @property
    def listeners(self) -> tuple[P, ...]:
        """The connections that are sent chunks now: all but those that have an offer to take up."""
        if self._listeners is None:
            self._listeners = tuple(peer for peer in self._peers if peer not in self._offered)
        return self._listeners

    @property
    def failed(self) -> str | None:
        """The turn that failed last, if no turn was accepted since."""
        return self._failed

    # ── connections ─────────────────────────────────────────────────

    def connected(self, peer: P) -> Greeting:
        """A new connection. It is offered a running stream unasked; a failed one only when it asks."""
        self._peers[peer] = None
        self._listeners = None
        if self._streaming is not None:
            return self._offer(peer, self._streaming)
        if self._accepted:
            self._parked.add(peer)
            return Pending(self._newest())
        return Idle()

    def probed(self, peer: P) -> Greeting:
        """A connection asks whether there is something to attach to. It gets an answer each time it asks."""
        if self._streaming is not None:
            if self._current is not None and self._current.owner not in {None, peer}:
                return Taken()
            return self._offer(peer, self._streaming)
        if (coming := self._next) is not None and self._may_wait(peer, coming):
            coming.awaited[peer] = None
            return Pending(coming.id)
        if self._failed is not None:
            return self._note(peer, self._failed)
        if self._accepted:
            self._parked.add(peer)
            return Pending(self._newest())
        return Idle()

    def acked(self, peer: P, stream: str) -> Replay:
        """A connection takes an offer up. Whatever it names, it gets live chunks again from now on.

        Unless it names an older offer of its own: that ack and the newer offer have crossed. Clients ack each offer, so
        the ack of the newer one will come, and with it the replay; live chunks before that would be torn out of it.
        """
        crossed = self._answer(peer, stream) and stream != self._streaming
        if crossed and peer in self._offered:
            return "nothing"
        self._offered.discard(peer)
        self._listeners = None
        if self._streaming is not None:
            return "live" if stream == self._streaming else "nothing"
        return "failed" if stream == self._failed else "over"

    def closed(self, peer: P) -> None:
        """A connection is gone. No turn ends because of it."""
        self._peers.pop(peer, None)
        self._offered.discard(peer)
        self._unanswered.pop(peer, None)
        self._parked.discard(peer)
        for continuation in (self._next, self._current):
            if continuation is not None:
                continuation.awaited.pop(peer, None)
                if continuation.owner == peer:
                    continuation.owner = None
        self._listeners = None

    # ── continuations ───────────────────────────────────────────────

    def wanted(self, continuation: str, peer: P | None) -> None:
        """A connection, or the server's own code, answered a tool call and wants the conversation to go on. That one's
        it is then."""
        coming = self._next
        if coming is None or coming.id != continuation:
            coming = self._next = _Continuation(continuation)
        coming.owner = peer
        if peer is not None:
            coming.awaited[peer] = None

    def admitted(self, continuation: str) -> None:
        """The turn of a continuation was accepted."""
        self._failed = None
        if self._next is None or self._next.id != continuation:
            self._next = _Continuation(continuation)
        self._next.admitted = True

    def not_continued(self) -> list[P]:
        """There will be no continuation. Gives the connections to release."""
        coming, self._next = self._next, None
        return [] if coming is None else list(coming.awaited)

    def _may_wait(self, peer: P, coming: _Continuation[P]) -> bool:
        # Without its connection it may take days until the other calls are answered: nobody is to wait for that.
        return coming.owner == peer or (coming.owner is None and coming.admitted)

    # ── turns ───────────────────────────────────────────────────────

    def accepted(self, turn: str) -> None:
        """A request was accepted: an older failure is history."""
        self._failed = None
        self._accepted[turn] = None

    def streaming(self, turn: str) -> list[P]:
        """A stream starts. Gives the connections to offer it to before its first chunk."""
        self._streaming = turn
        waiting = dict.fromkeys(self._release())
        if self._next is not None and self._next.id == turn:
            self._current, self._next = self._next, None
            waiting.update(self._current.awaited)
        for peer in waiting:
            self._offer(peer, turn)
        return list(waiting)

    def stream_ended(self) -> None:
        """The stream is over, its message not yet stored. Who has not taken the offer up gets the end live."""
        self._streaming = self._current = None
        self._offered.clear()
        self._listeners = None

    def settled(self, turn: str, *, failed: bool = False) -> list[P]:
        """A request is over. Gives the connections to release: no stream will come for them."""
        self._accepted.pop(turn, None)
        if failed:
            self._failed = turn
        released = self.not_continued() if self._next is not None and self._next.id == turn else []
        if self._accepted or self._streaming is not None:
            return released
        return [*released, *self._release()]

    def cleared(self) -> list[P]:
        """The conversation was forgotten. Gives the connections to release that wait for a stream."""
        awaiting = self.not_continued()
        self._streaming = self._current = None
        self._failed = None
        self._accepted.clear()
        self._offered.clear()
        self._listeners = None
        return list(dict.fromkeys([*awaiting, *self._release()]))

    def _offer(self, peer: P, stream: str) -> Resuming:
        self._offered.add(peer)
        self._listeners = None
        return self._note(peer, stream)

    def _note(self, peer: P, stream: str) -> Resuming:
        offers = self._unanswered.setdefault(peer, [])
        if stream not in offers[-1:]:
            offers.append(stream)
            del offers[:-REMEMBERED]
        return Resuming(stream)

    def _answer(self, peer: P, stream: str) -> bool:
        """Whether an ack answers an offer. It answers those before it, too: acks come in the order of the offers."""
        offers = self._unanswered.get(peer, ())
        if stream not in offers:
            return False
        left = offers[offers.index(stream) + 1 :]
        if left:
            self._unanswered[peer] = left
        else:
            del self._unanswered[peer]
        return True

    def _release(self) -> list[P]:
        waiting = list(self._parked)
        self._parked.clear()
        return waiting

    def _newest(self) -> str:
        return next(reversed(self._accepted))
