"""Server-sent events from bytes, as the WHATWG standard reads them.

Pure: no I/O, no clock. Owns nothing of what an event means; imports nothing of perdure.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Event", "EventDecoder"]

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event that carries data."""

    data: bytes
    """The ``data`` lines, joined with line feeds."""
    name: bytes = b""
    """The ``event`` field; empty where there is none."""


class EventDecoder:
    """Turns a byte stream into events, however it is cut.

    Lines end in LF, CRLF or CR. Comments, ``id`` and ``retry`` are dropped, events without data too.
    """

    __slots__ = ("_between", "_data", "_name", "_partial", "_skip_line_feed", "_started")

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        """Pieces of a line that has not ended yet. A list, as joining each piece costs the square of the length."""
        self._data: list[bytes] = []
        self._name = b""
        self._skip_line_feed = False
        self._started = False
        self._between = False
        """Whether nothing is left of what came so far."""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that ``piece`` completes."""
        if self._between and _is_one_event(piece):
            return [Event(piece[6:-2])]
        if self._skip_line_feed and piece:
            self._skip_line_feed = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        if b"\r" in piece:
            self._skip_line_feed = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *lines = piece.split(b"\n")
        self._partial.append(first)
        self._between = False
        if not lines:
            return []
        rest = lines.pop()
        lines.insert(0, b"".join(self._partial))
        self._partial = [rest]
        events = self._take(lines)
        self._between = not (rest or self._data or self._name or self._skip_line_feed)
        return events

    def finish(self) -> list[Event]:
        """The event that the end of the stream left open.

        The standard drops it. It is kept here because servers exist that close right after the last line; one that was
        cut is not JSON and fails where it is decoded.
        """
        return self._take([b"".join(self._partial), b""])

    def _take(self, lines: list[bytes]) -> list[Event]:
        if not self._started:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        events: list[Event] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(Event(b"\n".join(self._data), self._name))
                    self._data = []
                self._name = b""
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif field == b"event":
                self._name = value.removeprefix(b" ")
        return events


def _is_one_event(piece: bytes) -> bool:
    """Whether ``piece`` is one line of data and the end of its event: most servers send events one at a time."""
    first = piece.find(b"\n")
    return first == len(piece) - 2 and piece.endswith(b"\n") and piece.startswith(b"data: ") and b"\r" not in piece
