"""What happens in one conversation: moves of its clients, moods of its models. Plain data, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.faults.fuzz import frames
from tests.faults.fuzz.values import weighted

__all__ = [
    "Answer",
    "Ask",
    "Clear",
    "Close",
    "Fetch",
    "LetGo",
    "Mood",
    "Move",
    "Open",
    "Plan",
    "Repeat",
    "Rest",
    "Restart",
]
__all__ += ["Send", "Settle", "Stop", "Take", "Wire", "plans"]

TABS = 4


@dataclass(frozen=True)
class Mood:
    """What a model does in one step."""

    kind: str
    number: int = 0
    """How much of it."""
    calls: tuple[tuple[str, str, Any], ...] = ()
    """Tool, call id, input."""
    chunks: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Open:
    """A tab connects, in the place of the one before it."""

    tab: int
    place: str
    """What follows the name of the conversation."""
    query: str = ""


@dataclass(frozen=True)
class Close:
    tab: int
    rudely: bool


@dataclass(frozen=True)
class Send:
    """Frames in one piece."""

    tab: int
    frames: tuple[str | bytes, ...]


@dataclass(frozen=True)
class Ask:
    """A request as the page sends it: new, with all that the tab was sent, or about what is there already."""

    tab: int
    posts_all: bool = True
    regenerates: bool = False
    brings_tools: bool = False


@dataclass(frozen=True)
class Repeat:
    """A request that was sent before."""

    tab: int
    number: int


@dataclass(frozen=True)
class Stop:
    tab: int
    number: int
    """Which request; counted from the newest."""


@dataclass(frozen=True)
class Clear:
    tab: int


@dataclass(frozen=True)
class Take:
    """The tab takes up all offers that it has not, as the page does."""

    tab: int


@dataclass(frozen=True)
class Answer:
    """The page gives the result of a call, or a person says yes or no."""

    tab: int
    number: int
    """Which call; counted from the newest."""
    kind: str
    goes_on: bool
    value: Any = None


@dataclass(frozen=True)
class Settle:
    """Wait until everything that the tab was sent is there."""

    tab: int


@dataclass(frozen=True)
class LetGo:
    """Models and tools that wait go on."""


@dataclass(frozen=True)
class Rest:
    """Nothing happens for long: agents that are idle leave memory."""


@dataclass(frozen=True)
class Restart:
    """The server ends and starts again."""


@dataclass(frozen=True)
class Fetch:
    """An HTTP request."""

    method: str
    place: str


@dataclass(frozen=True)
class Wire:
    """Bytes that are no WebSocket, or not quite."""

    tab: int
    data: bytes


Move = (
    Answer | Open | Close | Send | Ask | Repeat | Stop | Clear | Take | Settle | LetGo | Rest | Restart | Fetch | Wire
)


@dataclass(frozen=True)
class Plan:
    kind: str
    """Which agents."""
    moods: tuple[Mood, ...]
    moves: tuple[Move, ...]


_TOOLS = [
    "echo",
    "asks",
    "at_page",
    "asks_page",
    "brought",
    "fails",
    "waits",
    "odd",
    "threaded",
    "progress",
    "no-such",
    "",
    "Ä/ö",
    "x" * 70,
]
_chunk = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "text-start",
                "text-delta",
                "text-end",
                "reasoning-delta",
                "reasoning-end",
                "tool-input-start",
                "tool-input-delta",
                "tool-input-available",
                "tool-input-error",
                "tool-output-available",
                "start",
                "start-step",
                "reset-step",
                "finish",
                "data-x",
                "file",
                "source-url",
                "message-metadata",
                "error",
                "abort",
                "unheard",
            ]
        )
    },
    optional={
        "id": st.sampled_from(["0", "1", ""]),
        "delta": st.sampled_from(["a", "", "\ud83d", "\udc0e", None, 5]),
        "toolCallId": st.sampled_from(["c0", "c1", "", None]),
        "toolName": st.sampled_from(_TOOLS),
        "inputTextDelta": st.sampled_from(['{"', "", None]),
        "input": st.sampled_from([{}, {"value": 1}, "{", None, []]),
        "output": st.sampled_from([1, None, "\ud800"]),
        "errorText": st.sampled_from(["no", None, 5]),
        "messageMetadata": st.sampled_from([{"a": 1}, None, 5]),
        "data": st.sampled_from([1, None, float("nan")]),
        "transient": st.booleans(),
        "messageId": st.sampled_from(["x", "", None]),
        "providerExecuted": st.booleans(),
    },
)
_call = st.tuples(
    st.sampled_from(_TOOLS[:4] * 4 + _TOOLS),
    st.sampled_from(["c0", "c0", "c1", "c2", ""]),
    st.sampled_from([{}, {"value": 1}, {"value": "\ud800"}, {"value": {"a": [1]}}, {"other": 1}]),
)
_calls = st.builds(lambda calls: Mood("call", calls=tuple(calls)), st.lists(_call, min_size=1, max_size=3))
moods = weighted(
    (6, st.builds(Mood, st.just("wait"), st.integers(1, 150))),
    (1, st.builds(Mood, st.sampled_from(["talk", "drip"]), st.integers(1, 150))),
    (1, st.builds(Mood, st.sampled_from(["endless", "think", "silent"]))),
    (2, st.builds(Mood, st.sampled_from(["fail", "crash", "cancelled", "breaks off"]))),
    (1, st.builds(Mood, st.just("large"), st.sampled_from([1_000, 70_000]))),
    (3, _calls),
    (2, st.builds(lambda chunks: Mood("odd", chunks=tuple(chunks)), st.lists(_chunk, min_size=1, max_size=6))),
)

_ODD_NAMES = [
    "%00",
    "%ff",
    "%",
    "%2F",
    "%2e%2e",
    "..",
    "sub",
    "%F0%9F%90%8E",
    "%ED%A0%80",
    "x" * 512,
    "x" * 513,
    "a+b",
    "a%20b",
    "a;b",
    "%c3%28",
]
_odd_places = st.one_of(
    st.sampled_from(["/sub", "/sub/", "/sub/child", "/sub/Child/a", "/sub/nobody/a", "/sub/child/a/sub/nobody/b"]),
    st.sampled_from(["//sub//child//a", "/sub/child/a/sub/child", "/sub/fuzz/x", "/x/sub/child/a", "/sub/sub/sub"]),
    st.just("/sub/child/a" * 5),
    st.builds(lambda name: f"/sub/child/{name}", st.sampled_from(_ODD_NAMES)),
    st.builds(lambda name: f"/sub/child/a/sub/small/{name}", st.sampled_from(_ODD_NAMES)),
)
_places = weighted(
    (9, st.just("")),
    (3, st.sampled_from(["/sub/child/a", "/sub/small/b", "/sub/child/a/sub/child/a"])),
    (1, _odd_places),
)
_queries = weighted(
    (9, st.just("")),
    (1, st.sampled_from(["?_pk=same", "?_pk=", "?__agents_transport=capnweb", "?a=%ff&a=2&&=", "?" + "q" * 2000])),
)
_tab = st.integers(0, TABS - 1)
_wire = st.one_of(
    st.binary(min_size=1, max_size=30),
    st.sampled_from(
        [
            b"\x81\x85\0\0\0\0\xff\xfe\xfd\xfc\xfb",  # text that is no UTF-8
            b"\x01\x81\0\0\0\0{",  # the beginning of a message that does not go on
            b"\x80\x81\0\0\0\0}",  # the end of one that has not begun
            b"\x81\x05hello",  # not masked
            b"\x88\x80\0\0\0\0",  # a close without a code
            b"\x88\x82\0\0\0\0\x03\xed",  # … with a code that must not be sent
            b"\x89\xfe\x00\x7e\0\0\0\0" + b"x" * 126,  # a ping that is too long
            b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",  # a frame of eight exabytes
            b"\xf1\x80\0\0\0\0",  # reserved bits
        ]
    ),
)

_answers = st.sampled_from(["yes", "yes", "no", "result", "result", "error"])
_values = st.sampled_from([None, "fine", {"value": 2}, "\ud800", [[]], 5])
moves = weighted(
    (8, st.builds(Ask, _tab)),
    (1, st.builds(Ask, _tab, st.just(False))),
    (2, st.builds(Ask, _tab, st.just(True), st.just(False), st.just(True))),
    (
        6,
        st.builds(
            Answer, _tab, st.integers(0, 2), _answers, weighted((3, st.just(True)), (1, st.just(False))), _values
        ),
    ),
    (2, st.builds(Ask, _tab, st.just(True), st.just(True))),
    (8, st.builds(lambda tab, texts: Send(tab, tuple(texts)), _tab, st.lists(frames.texts, min_size=1, max_size=4))),
    (4, st.builds(Open, _tab, _places, _queries)),
    (4, st.builds(Take, _tab)),
    (4, st.builds(Settle, _tab)),
    (3, st.builds(Stop, _tab, st.integers(0, 2))),
    (3, st.just(LetGo())),
    (2, st.builds(Close, _tab, st.booleans())),
    (2, st.builds(Repeat, _tab, st.integers(0, 5))),
    (1, st.builds(Clear, _tab)),
    (1, st.just(Rest())),
    (1, st.builds(Wire, _tab, _wire)),
    (1, st.builds(Fetch, st.sampled_from(["GET", "POST", "OPTIONS", "HEAD"]), st.one_of(_places, _odd_places))),
    (1, st.builds(Fetch, st.just("GET"), st.one_of(_places, _odd_places).map(lambda place: f"{place}/get-messages"))),
)
_OPEN = (Open(0, ""), Open(1, ""), Open(2, ""))
_rarely = st.sampled_from([(Restart(),), (), (), (), (), ()])
_kinds = weighted(
    (4, st.just("fuzz")), (1, st.just("small")), (3, st.sampled_from(["latest", "merge", "drop", "calm"]))
)
plans = st.builds(
    lambda kind, moods, early, end, late: Plan(kind, tuple(moods), (*_OPEN, *early, *end, *late)),
    _kinds,
    st.lists(moods, min_size=4, max_size=12),
    st.lists(moves, min_size=10, max_size=30),
    _rarely,
    st.lists(moves, min_size=2, max_size=20),
)
