"""The conversation tree, against a plain model and a real store."""

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from perdure.protocol.messages import UIMessage
from perdure.session.transcript import Transcript
from perdure.storage.contract import ClearConversation, LoadAgent, LoadOffPath, LoadPath, MessageRow, Operation
from perdure.storage.sqlite import SqliteStore


def text_of(identifier: str) -> str:
    return f'{{"id":"{identifier}","role":"user","parts":[]}}'


def answer_of(identifier: str) -> UIMessage:
    return {"id": identifier, "role": "assistant", "parts": [{"type": "text", "text": identifier}]}


def path_of(transcript: Transcript) -> list[str]:
    return [message["id"] for message in transcript.messages()]


class Chat:
    """A transcript and the operations that it gave."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.operations: list[Operation] = []

    def append(self, identifier: str, parent: str | None = None, *, waiting: bool = False) -> None:
        text = text_of(identifier)
        self.operations += self.transcript.append(identifier, "user", text, parent, 1, waiting=waiting)

    def answer(self, identifier: str, parent: str | None) -> None:
        self.operations += self.transcript.answer(answer_of(identifier), parent, 1)

    @property
    def path(self) -> list[str]:
        return path_of(self.transcript)

    def history(self, upto: str | None) -> list[str]:
        return [item.message["id"] for item in self.transcript.history(upto)]


def chat(*messages: str) -> Chat:
    """A chat in which each message follows the one before; those that begin with ``a`` are answers."""
    made = Chat()
    parent: str | None = None
    for message in messages:
        (made.answer if message.startswith("a") else made.append)(message, parent)
        parent = message
    return made


# ── the path ────────────────────────────────────────────────────────


def test_a_new_transcript_is_empty() -> None:
    transcript = Transcript()
    assert (transcript.leaf, transcript.texts(), transcript.messages(), transcript.history(None)) == (None, [], [], [])


def test_messages_follow_each_other_with_their_texts_kept() -> None:
    made = Chat()
    text = '{"role":"user",  "id":"u1","parts":[],"x":1.0}'
    made.transcript.append("u1", "user", text, None, 1)
    made.answer("a1", "u1")
    assert made.transcript.texts() == [text, '{"id":"a1","role":"assistant","parts":[{"type":"text","text":"a1"}]}']
    assert made.transcript.leaf == "a1"
    assert made.history("a1") == ["u1", "a1"]
    assert made.history("u1") == ["u1"]
    assert made.history(None) == []


def test_another_answer_to_a_message_takes_the_place_of_what_followed() -> None:
    made = chat("u1", "a1", "u2", "a2")
    made.answer("a3", "u1")
    assert made.path == ["u1", "a3"]
    assert made.history("a2") == ["u1", "a1", "u2", "a2"], "the old branch stays in the tree"
    assert set(made.transcript.known) == {"u1", "a1", "u2", "a2", "a3"}


def test_a_message_after_one_of_another_branch_brings_that_branch_back() -> None:
    made = chat("u1", "a1", "u2")
    made.answer("a3", "u1")
    made.append("u4", "u2")
    assert made.path == ["u1", "a1", "u2", "u4"]


def test_a_second_root_leaves_the_first_tree() -> None:
    made = chat("u1", "a1")
    made.append("u2", None)
    assert made.path == ["u2"]
    assert made.history("a1") == ["u1", "a1"]


# ── messages that wait ──────────────────────────────────────────────


def test_an_answer_goes_before_the_messages_that_wait() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    made.append("u3", "u2", waiting=True)
    assert made.path == ["u1", "u2", "u3"], "they are shown at once"
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1", "u2", "u3"]
    made.transcript.begin(["u2"])
    made.answer("a2", "u2")
    assert made.path == ["u1", "a1", "u2", "a2", "u3"]
    assert made.history("u3") == ["u1", "a1", "u2", "a2", "u3"]


def test_a_message_that_waits_no_longer_is_left_behind_like_any_other() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    made.transcript.begin(["u2"])
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1"]


def test_a_message_can_be_held_again() -> None:
    made = chat("u1", "u2")
    made.transcript.hold(["u2", "never there"])
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1", "u2"]


def test_an_answer_to_what_was_edited_meanwhile_stays_off_the_path() -> None:
    made = chat("u1", "a1", "u2")
    made.append("e1", None)
    made.answer("a2", "u2")
    assert made.path == ["e1"]
    assert made.history("a2") == ["u1", "a1", "u2", "a2"]
    made.answer("a3", "e1")
    assert made.path == ["e1", "a3"]


def test_an_edit_that_waits_leaves_those_behind_that_waited_for_what_it_replaces() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    made.append("e2", "u1", waiting=True)
    assert made.path == ["u1", "e2"]
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1", "e2"]


def test_the_tip_is_the_last_message_that_does_not_wait() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    assert (made.transcript.leaf, made.transcript.tip(None), made.transcript.tip("u2")) == ("u2", "u1", "u1")
    made.append("e1", None)
    assert made.transcript.tip("u1") == "u1", "a message of another branch stays what it is"
    assert Transcript().tip(None) is None


def test_a_message_that_is_replaced_keeps_its_place() -> None:
    made = chat("u1", "a1", "u2")
    made.operations += made.transcript.update({**answer_of("a1"), "metadata": {"a": 1}})
    assert made.path == ["u1", "a1", "u2"]
    assert made.transcript.messages()[1]["metadata"] == {"a": 1}


def test_clearing_forgets_everything_and_the_ids_may_come_again() -> None:
    made = chat("u1", "a1")
    assert made.transcript.clear() == [ClearConversation()]
    assert made.transcript.known == {}
    assert made.path == []
    made.append("u1", None)
    assert made.path == ["u1"]


# ── what the store makes of it ──────────────────────────────────────


async def reloaded(made: Chat) -> Transcript:
    """The transcript of an agent that was woken after ``made``."""
    store = await SqliteStore.temporary()
    try:
        await store.write("a", store.epoch, made.operations)
        record = await store.read(LoadAgent("a"))
        return Transcript(await store.read(LoadPath("a")), await store.read(LoadOffPath("a")), record.next_pos)
    finally:
        await store.close()


@pytest.mark.anyio
async def test_a_message_that_was_edited_while_it_waited_is_found_again_where_it_stood() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    made.append("u3", "u2", waiting=True)
    made.append("e3", "u2", waiting=True)
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1", "u2", "e3"]
    again = await reloaded(made)
    assert path_of(again) == made.path
    assert [item.message["id"] for item in again.history("u3")] == ["u1", "a1", "u2", "u3"]


@pytest.mark.anyio
async def test_what_follows_a_message_that_waits_keeps_its_place_though_it_waits_no_longer() -> None:
    made = chat("u1")
    made.append("u2", "u1", waiting=True)
    made.append("u3", "u2")
    made.answer("a1", "u1")
    assert made.path == ["u1", "a1", "u2", "u3"]
    assert path_of(await reloaded(made)) == made.path


# ── any interleaving ────────────────────────────────────────────────


@contextlib.contextmanager
def temporary_store(runner: asyncio.Runner) -> Iterator[SqliteStore]:
    store = runner.run(SqliteStore.temporary())
    try:
        yield store
    finally:
        runner.run(store.close())


class AnyInterleaving(RuleBasedStateMachine):
    """The transcript beside a dict of parents, each kept in a store as well."""

    runner: asyncio.Runner
    store: SqliteStore
    agents = 0

    def __init__(self) -> None:
        super().__init__()
        AnyInterleaving.agents += 1
        self.agent = f"agent-{self.agents}"
        self.transcript = Transcript()
        self.count = 0
        self.parents: dict[str, str | None] = {}
        self.path: list[str] = []
        self.waiting: set[str] = set()

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

    def new_id(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def write(self, operations: list[Operation]) -> None:
        async def write() -> None:
            await self.store.write(self.agent, self.store.epoch, operations)

        self.runner.run(write())

    # what happens

    @rule(data=st.data(), waiting=st.booleans())
    def append(self, data: st.DataObject, waiting: bool) -> None:
        parent = data.draw(st.sampled_from([self.transcript.leaf, None, *self.parents]))
        identifier = self.new_id()
        if waiting:
            self.waiting.add(identifier)
        self.place(identifier, parent)
        text = text_of(identifier)
        self.write(self.transcript.append(identifier, "user", text, parent, self.count, waiting=waiting))

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        parent = data.draw(st.sampled_from(list(self.parents)))
        identifier = self.new_id()
        if parent in self.path:
            self.place(identifier, parent)
        else:
            self.parents[identifier] = parent
        self.write(self.transcript.answer(answer_of(identifier), parent, self.count))

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        self.count += 1
        chosen = data.draw(st.sampled_from(list(self.parents)))
        self.write(self.transcript.update({**answer_of(chosen), "metadata": {"version": self.count}}))

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.sampled_from(list(self.parents)), max_size=3))
        self.waiting -= chosen
        self.transcript.begin(chosen)

    @precondition(lambda self: self.parents)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.sampled_from(list(self.parents)), max_size=3))
        self.waiting |= chosen
        self.transcript.hold(chosen)

    @rule(sure=st.integers(0, 9))
    def clear(self, sure: int) -> None:
        if sure == 0:
            self.parents.clear()
            self.path.clear()
            self.waiting.clear()
            self.write(self.transcript.clear())

    # what must hold

    @invariant()
    def the_path_is_the_models(self) -> None:
        assert path_of(self.transcript) == self.path
        assert self.transcript.leaf == (self.path[-1] if self.path else None)

    @invariant()
    def every_message_follows_its_parent(self) -> None:
        assert {node.id: node.parent for node in self.transcript.known.values()} == self.parents
        assert self.path == self.branch(self.path[-1] if self.path else None)
        for identifier in self.parents:
            assert [one.message["id"] for one in self.transcript.history(identifier)] == self.branch(identifier)

    @invariant()
    def what_is_stored_is_what_is_in_memory(self) -> None:
        path, elsewhere, next_pos = self.runner.run(self.load())
        assert [row.id for row in path] == self.path
        assert {row.id for row in elsewhere} == set(self.parents) - set(self.path)
        again = Transcript(path, elsewhere, next_pos)
        assert again.texts() == self.transcript.texts()
        assert _shape(again) == _shape(self.transcript)
        assert next_pos > max((node.pos for node in again.known.values()), default=-1)

    async def load(self) -> tuple[list[MessageRow], list[MessageRow], int]:
        record = await self.store.read(LoadAgent(self.agent))
        path = await self.store.read(LoadPath(self.agent))
        return path, await self.store.read(LoadOffPath(self.agent)), record.next_pos


def _shape(transcript: Transcript) -> dict[str, Any]:
    return {node.id: (node.pos, node.parent, node.role, node.text) for node in transcript.known.values()}


AnyInterleaving.TestCase.settings = settings(
    max_examples=30,
    stateful_step_count=15,
    deadline=None,
    # Without shrinking: on a real store it would take minutes, and fifteen steps can be read as they are.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def test_any_interleaving_keeps_path_tree_and_store_together() -> None:
    with asyncio.Runner() as runner, temporary_store(runner) as store:
        AnyInterleaving.runner, AnyInterleaving.store = runner, store
        AnyInterleaving.TestCase().runTest()
