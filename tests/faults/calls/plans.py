"""What happens in one conversation: what its model calls, and what everybody does. Plain data, drawn by hypothesis."""

from __future__ import annotations

import itertools
import random
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
    """Which of those that nobody has answered yet, counted from the newest; beyond them, one that there is not."""
    kind: str
    go_on: bool = True
    any: bool = False
    """Of all that were ever shown."""


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
KINDS = [*["fitting"] * 8, "result", "failure", "approval", "denial", "denial", "denial", "edit"]


class _Drawing:
    """Draws a plan. Not put together of strategies: those prefer what is small, and most is too small to matter."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._calm = self._chance(0.2)
        """Whether everybody just answers."""

    def plan(self) -> Plan:
        steps = tuple(self._step() for _ in range(self._rng.randint(2, 12)))
        moves = itertools.chain(*(self._phrase() for _ in range(self._rng.randint(2, 12))))
        kind = self._rng.choice(["calls", "small"] if self._calm else ["calls", "calls", "small", "latest"])
        return Plan(kind, steps, (Open(0), Open(1), Ask(0), *moves))

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _tab(self) -> int:
        return self._rng.randrange(TABS)

    def _step(self) -> Step:
        calls = tuple(self._rng.choice(TOOLS) for _ in range(self._rng.randint(1, 4))) if self._chance(0.8) else ()
        return Step(calls, waits=self._chance(0.3), repeats=self._chance(0.15))

    def _phrase(self) -> tuple[Move, ...]:
        """A few moves that make sense one after the other."""
        wait, everything, later = Wait(self._tab()), self._everything(), Later()
        match self._rng.randrange(7 if self._calm else 14):
            case 0 | 1:
                return (wait, everything, later, Wait(self._tab()))
            case 2:
                return (wait, everything, self._little(), later, Wait(self._tab()))
            case 3:
                return (wait, self._answer(), self._little(), everything, later)
            case 4:
                return (wait, LetGo(), wait, self._answer(), self._little(), everything, later)
            case 5:
                return (everything, LetGo(), wait, later, self._little(), wait)
            case 6:
                return (Open(self._tab()), wait, self._little())
            case 7:
                return (wait, everything, Later(), Restart(), wait, everything, later)
            case 8:
                return (self._ask(), wait)
            case 9:
                return (self._ask(), wait, everything, self._little())
            case 10 | 11:
                return (self._little(), self._little())
            case _:
                return (wait, Clear(self._tab()) if self._chance(0.2) else self._code())

    def _little(self) -> Move:
        match self._rng.randrange(9 if self._calm else 14):
            case 0 | 1:
                return LetGo()
            case 2 | 3:
                return Later()
            case 4:
                return Rest()
            case 5 | 6:
                return self._answer()
            case 7:
                return Probe(self._tab())
            case 8:
                return Close(self._tab())
            case 9 | 10:
                return Restart()
            case 11:
                return self._code()
            case 12:
                return Stop(self._tab(), self._rng.randrange(3))
            case _:
                return self._ask()

    def _code(self) -> Code:
        return Code(self._rng.choice(CODE))

    def _ask(self) -> Ask:
        return Ask(self._tab(), self._rng.choice(["new", "new", "new", "again", "edit"]))

    def _answer(self) -> Answer:
        return Answer(self._tab(), tuple(self._one() for _ in range(self._rng.randint(1, 3))))

    def _everything(self) -> Answer:
        """An answer to all that waits."""
        return Answer(self._tab(), (One(0, "fitting", go_on=self._chance(0.9)),) * 4)

    def _one(self) -> One:
        kind, go_on = self._rng.choice(KINDS), self._chance(0.8)
        if self._chance(0.25):
            return One(self._rng.choice([0, 1, 2, 3, 5, 99]), kind, go_on, any=True)
        return One(self._rng.choice([0, 0, 0, 1, 2]), kind, go_on)


plans = st.randoms(use_true_random=True).map(lambda rng: _Drawing(rng).plan())
