"""Who is told what about the stream that runs: offers, replays, and who must wait (reference: protocol §9).

Keeps, for one agent, which connections were offered a stream and have not taken it up (they get no chunks: the replay
brings them), which wait for an accepted turn to start streaming, and which failed turn is still to be shown to clients
that were away. Generic in the connection, which only needs to be hashable. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, Literal, TypeVar

import msgspec

__all__ = ["REMEMBERED", "Greeting", "Handshake", "Idle", "Pending", "Replay", "Resuming"]

P = TypeVar("P", bound=Hashable)


class Resuming(msgspec.Struct, frozen=True):
    """Offer this stream."""

    id: str


class Pending(msgspec.Struct, frozen=True):
    """A turn is accepted, its stream has not started: keep waiting."""

    id: str


class Idle(msgspec.Struct, frozen=True):
    """Nothing runs, waits, or is left to be shown."""


Greeting = Resuming | Pending | Idle

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
            return self._offer(peer, self._streaming)
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
        self._listeners = None

    # ── turns ───────────────────────────────────────────────────────

    def accepted(self, turn: str) -> None:
        """A request was accepted: an older failure is history."""
        self._failed = None
        self._accepted[turn] = None

    def streaming(self, turn: str) -> list[P]:
        """A stream starts. Gives the connections to offer it to before its first chunk."""
        self._streaming = turn
        waiting = self._release()
        for peer in waiting:
            self._offer(peer, turn)
        return waiting

    def stream_ended(self) -> None:
        """The stream is over, its message not yet stored. Who has not taken the offer up gets the end live."""
        self._streaming = None
        self._offered.clear()
        self._listeners = None

    def settled(self, turn: str, *, failed: bool = False) -> list[P]:
        """A request is over. Gives the parked connections to release: no stream will come for them."""
        self._accepted.pop(turn, None)
        if failed:
            self._failed = turn
        if self._accepted or self._streaming is not None:
            return []
        return self._release()

    def cleared(self) -> list[P]:
        """The conversation was forgotten. Gives the parked connections to release."""
        self._streaming = None
        self._failed = None
        self._accepted.clear()
        self._offered.clear()
        self._listeners = None
        return self._release()

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
