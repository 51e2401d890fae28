"""What happens in one conversation: what its model calls, and what everybody does. Plain data, drawn by hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

__all__ = ["Answer", "Ask", "Clear", "Close", "Code", "Later", "LetGo", "Move", "Open", "Plan", "Probe", "Rest"]
__all__ += ["Restart", "Step", "Stop", "Wait", "plans"]

TABS = 3


@dataclass(frozen=True)
class Step:
    """One answer of the model."""

    calls: tuple[str, ...] = ()
    """Names of tools."""
    waits: bool = False
    """Whether it waits at the end."""
    repeats: bool = False
    """Whether the ids of its calls are those of an earlier step."""


@dataclass(frozen=True)
class Open:
    """A page is loaded, in the place of the one before it."""

    tab: int


@dataclass(frozen=True)
class Close:
    tab: int


@dataclass(frozen=True)
class Ask:
    """A message of the user; or the wish for another answer, or an edit of the last message."""

    tab: int
    kind: str = "new"


@dataclass(frozen=True)
class One:
    """An answer to one call."""

    call: int
    """Which of those that were ever shown, counted from the newest; beyond them, one that there is not."""
    kind: str
    go_on: bool = True


@dataclass(frozen=True)
class Answer:
    """Answers in one packet."""

    tab: int
    answers: tuple[One, ...]


@dataclass(frozen=True)
class Stop:
    """Stop a turn: counted from the newest."""

    tab: int
    number: int


@dataclass(frozen=True)
class Probe:
    tab: int


@dataclass(frozen=True)
class Clear:
    tab: int


@dataclass(frozen=True)
class Code:
    """The server's own code does something."""

    what: str


@dataclass(frozen=True)
class Wait:
    """Wait until all that the tab was sent is there."""

    tab: int


@dataclass(frozen=True)
class LetGo:
    """Models and tools that wait go on."""


@dataclass(frozen=True)
class Later:
    """Some time passes: continuations begin."""


@dataclass(frozen=True)
class Rest:
    """So much time passes that agents leave memory."""


@dataclass(frozen=True)
class Restart:
    """The server ends and starts again."""


Move = Open | Close | Ask | Answer | Stop | Probe | Clear | Code | Wait | LetGo | Later | Rest | Restart


@dataclass(frozen=True)
class Plan:
    kind: str
    steps: tuple[Step, ...]
    moves: tuple[Move, ...]


TOOLS = ["pay", "pay", "pay", "place", "place", "where", "where", "echo", "slow", "fails", "seal", "maybe", "no-such"]
CODE = ["approve", "reject", "approve later", "note", "settle", "continue", "say", "elsewhere"]

_tabs = st.integers(0, TABS - 1)
_steps = st.builds(
    Step,
    st.lists(st.sampled_from(TOOLS), max_size=4).map(tuple),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([False, False, False, False, True]),
)
_ones = st.builds(
    One,
    st.sampled_from([0, 0, 0, 1, 1, 2, 3, 5, 99]),
    st.sampled_from(["result", "fitting", "fitting", "fitting", "fitting", "failure", "approval", "denial", "edit"]),
    st.sampled_from([True, True, True, True, False]),
)
_answers = st.builds(Answer, _tabs, st.lists(_ones, min_size=1, max_size=4).map(tuple))
_moves: st.SearchStrategy[Move] = st.one_of(
    st.builds(Open, _tabs),
    st.builds(Close, _tabs),
    st.builds(Ask, _tabs),
    st.builds(Ask, _tabs, st.sampled_from(["new", "new", "again", "edit"])),
    _answers,
    _answers,
    _answers,
    _answers,
    _answers,
    st.builds(Stop, _tabs, st.integers(0, 2)),
    st.builds(Probe, _tabs),
    st.one_of(st.builds(Wait, _tabs), st.builds(Wait, _tabs), st.builds(Wait, _tabs), st.builds(Clear, _tabs)),
    st.builds(Code, st.sampled_from(CODE)),
    st.builds(Wait, _tabs),
    st.builds(Wait, _tabs),
    st.just(LetGo()),
    st.just(Later()),
    st.just(Later()),
    st.just(Rest()),
    st.just(Restart()),
)

plans = st.builds(
    Plan,
    st.sampled_from(["calls", "calls", "small", "latest"]),
    st.lists(_steps, min_size=1, max_size=12).map(tuple),
    st.lists(_moves, max_size=30).map(lambda moves: (Open(0), Ask(0), *moves)),
)
