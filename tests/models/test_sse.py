"""Server-sent events from bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.models.quick.sse import Event, EventDecoder


def events_of(*pieces: bytes) -> list[Event]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)] + decoder.finish()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", [Event(b"a"), Event(b"b")]),
        (b"data:a\n\n", [Event(b"a")]),
        (b"data:  a \n\n", [Event(b" a ")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
        (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
        (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
        (b"data: a\ndata\ndata: b\n\n", [Event(b"a\n\nb")]),
        (b": ping\n\n: ping\n\ndata: a\n: in between\n\n", [Event(b"a")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [Event(b"a", b"error"), Event(b"b")]),
        (b"event: ping\n\ndata: b\n\n", [Event(b"b")]),
        (b"id: 1\nretry: 10\nunknown: x\nunknown\ndata: a\n\n", [Event(b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        ("data: ä€😀\n\n".encode(), [Event("ä€😀".encode())]),
        (b"data: [DONE]", [Event(b"[DONE]")]),
        (b"data: a\n", [Event(b"a")]),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_a_stream_is_read_as_the_standard_says(stream: bytes, expected: list[Event]) -> None:
    assert events_of(stream) == expected
    assert events_of(*(stream[i : i + 1] for i in range(len(stream)))) == expected


_LINES = st.sampled_from([
    b"data: x", b"data:", b"data", b"data:  y", b"event: error", b"event:z", b": note", b"id: 7", b"", b"",
    "data: ä€😀".encode(), b"\xef\xbb\xbfdata: bom", b"\xff\xfe",
])  # fmt: skip
_STREAMS = st.one_of(
    st.binary(max_size=60),
    st.lists(st.tuples(_LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=20).map(
        lambda lines: b"".join(line + end for line, end in lines)
    ),
)


@given(_STREAMS, st.lists(st.integers(0, 400), max_size=8))
def test_how_a_stream_is_cut_changes_nothing(stream: bytes, cuts: list[int]) -> None:
    marks = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(marks)]
    assert b"".join(pieces) == stream
    assert events_of(*pieces) == events_of(stream)


def test_events_come_as_soon_as_they_are_complete() -> None:
    decoder = EventDecoder()
    assert decoder.feed(b"data: a\n") == []
    assert decoder.feed(b"\ndata: b\r") == [Event(b"a")]
    assert decoder.feed(b"\n\r") == [Event(b"b")]
