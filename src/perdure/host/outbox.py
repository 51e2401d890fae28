"""The ordered outbox of one agent: effects after commit.

A frame waits for every write that was made before it, and no frame passes another. While nothing is being written,
frames go out at once. Knows no frame and no storage, only futures and a way to send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from perdure.storage.contract import Commit

__all__ = ["Outbox"]


class _Frame(NamedTuple):
    peers: Sequence[int]
    text: str


class _Call(NamedTuple):
    make: Callable[[], None]


class Outbox:
    """What one agent has to say, in order."""

    def __init__(self, send: Callable[[Sequence[int], str], None], failed: Callable[[BaseException], None]) -> None:
        """An empty outbox.

        Args:
            send: Sends a frame to connections, at once.
            failed: Called once when a write failed; nothing is sent any more.
        """
        self._send = send
        self._failed = failed
        self._queue: deque[Commit | _Frame | _Call] | None = None
        """There while something waits: an empty one would be most of what an idle agent takes."""
        self._closed = False

    def send(self, peers: Sequence[int], frame: str) -> None:
        """Send, after all that came before."""
        if not peers or self._closed:
            return
        if self._queue:
            self._queue.append(_Frame(peers, frame))
        else:
            self._send(peers, frame)

    def then(self, call: Callable[[], None]) -> None:
        """Call, after all that came before."""
        if self._closed:
            return
        if self._queue:
            self._queue.append(_Call(call))
        else:
            call()

    def hold(self, commit: Commit) -> None:
        """What is sent from now on waits for ``commit``."""
        if not self._closed:
            self._queue = self._queue or deque()
            self._queue.append(commit)
        commit.add_done_callback(self._drain)

    def __len__(self) -> int:
        return len(self._queue or ())

    def close(self) -> None:
        """Forget what was not sent."""
        self._closed = True
        self._queue = None

    def _drain(self, commit: Commit) -> None:
        # Looked at in any case, or the event loop complains of failures that came after the first.
        _failure_of(commit)
        while self._queue:
            entry = self._queue[0]
            if isinstance(entry, _Frame):
                self._send(entry.peers, entry.text)
            elif isinstance(entry, _Call):
                entry.make()
            elif not entry.done():
                return
            elif (error := _failure_of(entry)) is not None:
                self.close()
                self._failed(error)
                return
            if self._queue:  # closed by what was called
                self._queue.popleft()
        self._queue = None


def _failure_of(commit: Commit) -> BaseException | None:
    return None if commit.cancelled() else commit.exception()
