"""A transcript of which little is in memory, beside a plain tree that has everything."""

import asyncio
import contextlib
import itertools
import json
import math
from collections.abc import Awaitable, Iterator
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from perdure.session.attachments import put_back
from perdure.storage.contract import LoadAgent, LoadAttachments, LoadPath
from perdure.storage.sqlite import SqliteStore
from tests.session.chats import AGENT, Chat, answer_of, file_of, ids

T = TypeVar("T")

PARTS = st.sampled_from(
    [
        {"type": "text", "text": ""},
        {"type": "text", "text": "x" * 40},
        {"type": "text", "text": "x" * 1500},
        file_of(b"first" * 7_000),
        file_of(b"second" * 9_000),
    ]
)


@contextlib.contextmanager
def temporary_store(runner: asyncio.Runner) -> Iterator[SqliteStore]:
    store = runner.run(SqliteStore.temporary())
    try:
        yield store
    finally:
        runner.run(store.close())


class AnyInterleaving(RuleBasedStateMachine):
    """Messages, answers, edits, restarts, in any order, with windows of any size."""

    runner: asyncio.Runner
    store: SqliteStore

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.removed = False
        self.parents: dict[str, str | None] = {}
        self.texts: dict[str, str] = {}
        self.path: list[str] = []
        self.roles: dict[str, str] = {}
        self.waiting: set[str] = set()
        self.turns: list[tuple[str, bool]] = []
        """What is being answered, and whether it left the path since."""

    @initialize(window=st.integers(1, 1200), memory=st.integers(1, 4000), large=st.booleans())
    def begin_with(self, window: int, memory: int, large: bool) -> None:
        scale = 80 if large else 1
        self.budgets = {"window": window * scale, "memory": memory * scale}
        self.chat = self.run(Chat.open(self.store, **self.budgets))
        self.chat.write(self.chat.transcript.clear())

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self.runner.run(wait())

    # the plain model

    def branch(self, upto: str | None) -> list[str]:
        found: list[str] = []
        while upto is not None:
            found.insert(0, upto)
            upto = self.parents[upto]
        return found

    def place(self, identifier: str, parent: str | None) -> None:
        before = self.branch(parent)
        following = [one for one in self.path if one not in before]
        moved = list(itertools.dropwhile(lambda one: one not in self.waiting, following))
        if identifier in self.waiting:
            moved = []
        self.parents[identifier] = parent
        self.path = [*before, identifier, *moved]
        for one, after in zip(moved, [identifier, *moved], strict=False):
            self.parents[one] = after
        self.removed = len(following) > len(moved)

    def notice_what_left(self) -> None:
        """Answers to what left the path are not shown. Of what is older than all that is held nobody knows that."""
        if self.removed:
            known, path = self.chat.transcript.known, self.chat.transcript._path
            oldest = path.nodes[0].pos if path.is_windowed else -1
            left = {one for one, _ in self.turns if one not in self.path and known[one].pos > oldest}
            self.turns = [(question, question in left) for question, _ in self.turns]

    def new_id(self) -> str:
        self.count += 1
        return f"m{self.count}"

    # what happens

    @rule(data=st.data(), part=PARTS)
    def append(self, data: st.DataObject, part: dict[str, Any]) -> None:
        """A message, or an edit: anything may be the parent."""
        parent = data.draw(st.sampled_from([self.path[-1] if self.path else None, None, *self.parents]))
        waits = bool(self.turns) and data.draw(st.booleans())
        identifier = self.new_id()
        self.run(self.chat.transcript.reach([identifier], parent))
        assert identifier not in self.chat.transcript.known
        if waits:
            self.waiting.add(identifier)
        self.place(identifier, parent)
        self.roles[identifier] = "user"
        text = self.texts[identifier] = json.dumps({"id": identifier, "parts": [part], "role": "user"})
        self.chat.write(
            self.chat.transcript.append(
                identifier, "user", text, parent, self.count, waiting=identifier in self.waiting
            )
        )
        self.notice_what_left()

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def open_turn(self, data: st.DataObject) -> None:
        """Somebody asks for an answer to any message."""
        question = data.draw(st.sampled_from(list(self.parents)))
        self.run(self.chat.transcript.reach([question], question))
        self.chat.transcript.aim_at(question)
        self.turns = [(one, left and one != question) for one, left in self.turns] + [(question, False)]

    @precondition(lambda self: self.turns)
    @rule(part=PARTS)
    def answer(self, part: dict[str, Any]) -> None:
        question, left = self.turns.pop(0)
        identifier = self.new_id()
        if left:
            self.parents[identifier] = question
        else:
            self.place(identifier, question)
        message = answer_of(identifier, part)
        self.roles[identifier] = "assistant"
        self.texts[identifier] = json.dumps(message, separators=(",", ":"))
        self.chat.write(self.chat.transcript.answer(message, question, self.count))
        if not left:
            self.notice_what_left()
        self.settle()

    @precondition(lambda self: self.turns)
    @rule()
    def give_up(self) -> None:
        self.turns.pop()
        self.settle()

    def settle(self) -> None:
        if not self.turns:
            self.chat.transcript.begin(self.waiting)
            self.waiting.clear()
            self.chat.transcript.shrink()

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        identifier = data.draw(st.sampled_from(list(self.parents)))
        message = answer_of(identifier, data.draw(PARTS))
        self.texts[identifier] = json.dumps(message, separators=(",", ":"))
        self.run(self.chat.transcript.reach([identifier]))
        self.chat.write(self.chat.transcript.update(message))

    @precondition(lambda self: not self.turns)
    @rule()
    def restart(self) -> None:
        self.chat = self.run(self.chat.reopened(**self.budgets))

    @rule(sure=st.integers(0, 9))
    def clear(self, sure: int) -> None:
        if sure == 0:
            self.parents.clear()
            self.path.clear()
            self.waiting.clear()
            self.turns.clear()
            self.chat.write(self.chat.transcript.clear())

    # what must hold

    @invariant()
    def clients_are_sent_the_end_of_the_path_within_the_window(self) -> None:
        sent = self.chat.transcript.texts()
        assert sent == [self.texts[one] for one in self.path[len(self.path) - len(sent) :]]
        assert bool(sent) == bool(self.path)
        at_least = 2 if len(sent) > 1 and [self.roles[one] for one in self.path[-2:]] == ["user", "assistant"] else 1
        assert len(sent) <= at_least or sum(len(text) + 1 for text in sent) <= self.budgets["window"]
        assert self.chat.transcript.leaf == (self.path[-1] if self.path else None)
        assert [message["id"] for message in self.chat.transcript.messages()] == ids(sent)

    @invariant()
    def little_is_held_when_no_turn_is_open(self) -> None:
        if not self.turns and self.path:
            self.chat.transcript.shrink()
            held = sorted((one for one in self.chat.transcript.known.values() if one.loaded), key=lambda one: one.pos)
            assert [node.id for node in held] == self.path[len(self.path) - len(held) :]
            assert len(held) == 1 or sum(node.size for node in held) <= self.budgets["memory"]

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def a_model_is_shown_the_end_of_any_branch(self, data: st.DataObject) -> None:
        question = data.draw(st.sampled_from(list(self.parents)))
        self.run(self.chat.transcript.reach([question], question))
        history = self.run(self.chat.transcript.history(question, math.inf))
        shown = [entry.text for entry in history if entry.message["id"]]
        branch = self.branch(question)
        assert shown
        assert shown == [self.texts[one] for one in branch[len(branch) - len(shown) :]]

    @precondition(lambda self: self.path)
    @rule(data=st.data(), limit=st.one_of(st.none(), st.integers(0, 5)))
    def any_page_of_the_path_can_be_read(self, data: st.DataObject, limit: int | None) -> None:
        index = data.draw(st.one_of(st.none(), st.integers(0, len(self.path) - 1)))
        earlier = self.path[:index]
        wanted = earlier if limit is None else earlier[-limit:] if limit else []
        page = self.run(self.chat.transcript.page(None if index is None else self.path[index], limit))
        assert page == [json.loads(self.texts[one]) for one in wanted]

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def what_is_stored_is_known_and_nothing_else(self, data: st.DataObject) -> None:
        asked = [*data.draw(st.lists(st.sampled_from(list(self.parents)))), "never there"]
        self.run(self.chat.transcript.reach(asked))
        assert [one for one in asked if one not in self.chat.transcript.known] == ["never there"]

    @rule()
    def the_store_has_the_path(self) -> None:
        self.run(self.chat.settled())
        rows = self.run(self.store.read(LoadPath(AGENT)))
        digests = [reference.digest for row in rows for reference in row.attachments]
        data = self.run(self.store.read(LoadAttachments(AGENT, digests)))
        assert [put_back(row.body, row.attachments, data) for row in rows] == [self.texts[one] for one in self.path]
        assert self.run(self.store.read(LoadAgent(AGENT))).messages == len(self.parents)


AnyInterleaving.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # Without shrinking: on a real store it would take minutes, and thirty steps can be read as they are.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def test_any_interleaving_keeps_windows_tree_and_store_together() -> None:
    with asyncio.Runner() as runner, temporary_store(runner) as store:
        AnyInterleaving.runner, AnyInterleaving.store = runner, store
        AnyInterleaving.TestCase().runTest()
