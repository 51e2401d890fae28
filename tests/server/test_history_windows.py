"""Conversations of which only the recent end is in memory: what tabs and models see, and how the rest is reached."""

import importlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from perdure import Limits, Think, callable, tool
from perdure.errors import StorageError
from perdure.host.engine import Engine
from perdure.storage.contract import AppendChunks, AppendMessage, FindMessages, LoadBranch, OpenTurn, Operation, Query
from perdure.storage.sqlite import SqliteStore
from perdure.testing import Gate, ScriptedModel, call, chunk, pause, say, strict_provider_errors
from tests.requirements import requirement
from tests.support import Serve, Serving, agent, user_message
from tests.support.fixtures import ErrorLog

pytestmark = pytest.mark.anyio

KEY = "agent/room"

WIDE = Limits(window=32_000_000, frame=96_000_000)


def answer(identifier: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"id": identifier, "role": "assistant", "parts": list(parts) or [{"type": "text", "text": "ans"}]}


def conversation(turns: int) -> list[dict[str, Any]]:
    """Questions and answers, all of one size."""
    messages: list[dict[str, Any]] = []
    for number in range(turns):
        messages += [user_message("question", f"u{number:03}"), answer(f"a{number:03}")]
    return messages


SIZE = len(json.dumps(user_message("question", "u000"))) + 1


async def seed(folder: Path, messages: Iterable[dict[str, Any]], *more: Operation) -> None:
    """Store a conversation as an earlier server did."""
    operations: list[Operation] = []
    for pos, message in enumerate(messages):
        parent = pos - 1 if pos else None
        operations.append(AppendMessage(pos, message["id"], parent, message["role"], json.dumps(message), pos))
    store = await SqliteStore.open(folder)
    await store.write(KEY, store.epoch, [*operations, *more])
    await store.close()


def windowed(model: ScriptedModel, *, sent: int = 4, held: int = 10, **fields: Any) -> dict[str, Any]:
    """An agent that sends and holds about so many messages, as options for ``serve``."""
    kind = agent(model, hydration_byte_budget=held * SIZE, **fields)
    return {"kind": kind, "limits": Limits(window=sent * SIZE)}


async def served(serve: Serve, kind: type[Think], limits: Limits, **options: Any) -> Serving:
    return await serve(kind, limits=limits, **options)


def asked(model: ScriptedModel, number: int = -1) -> list[str]:
    """Ids of the messages that the model was shown; of notes, the text."""
    return [message["id"] or message["parts"][0]["text"] for message in model.requests[number].messages]


def ids(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["id"] for message in messages]


def stored_ids(folder: Path) -> list[str]:
    connection = sqlite3.connect(folder / "perdure.db")
    try:
        return [identifier for (identifier,) in connection.execute("select id from message order by pos")]
    finally:
        connection.close()


# ── what is sent and shown ──────────────────────────────────────────


async def test_tabs_are_sent_the_recent_end_and_a_model_is_shown_more_of_it(serve: Serve, tmp_path: Path) -> None:
    await seed(tmp_path, conversation(20))
    model = ScriptedModel([say("Well.")])
    server = await served(serve, **windowed(model))
    tab = await server.tab()
    greeted = (await tab.opened())[0]["messages"]
    assert ids(greeted) == ["u018", "a018", "u019", "a019"]
    assert await server.stored() == greeted
    question = user_message("question", "u020")
    await tab.ask("r1", *greeted, question)
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert asked(model)[-1] == "u020"
    assert asked(model)[:-1] == ids(conversation(20))[-10:]
    assert strict_provider_errors(model.requests[0]) == []
    assert stored_ids(tmp_path)[:-1] == [*ids(conversation(20)), "u020"]


async def test_a_window_that_begins_with_an_answer_is_introduced_to_the_model(serve: Serve, tmp_path: Path) -> None:
    await seed(tmp_path, conversation(20))
    model = ScriptedModel([say("Well.")])
    server = await served(serve, **windowed(model, held=1))
    tab = await server.tab()
    await tab.ask("r1", user_message("question", "u020"))
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert asked(model) == ["[Earlier messages are left out.]", "a019", "u020"]


async def test_memory_stays_bounded_while_a_conversation_grows(serve: Serve, tmp_path: Path) -> None:
    model = ScriptedModel([say("a" * 8) for _ in range(30)])
    server = await served(serve, **windowed(model))
    tab = await server.tab()
    for number in range(30):
        await tab.ask(f"r{number}", user_message("question", f"u{number:03}"))
        assert (await tab.done(f"r{number}"))["outcome"] == "completed"
    assert len(asked(model)) < 12
    assert len(await server.stored()) < 6
    assert len(stored_ids(tmp_path)) == 60


# ── older ids ───────────────────────────────────────────────────────


async def test_messages_that_are_older_than_what_is_held_are_not_taken_for_new(serve: Serve, tmp_path: Path) -> None:
    old = conversation(20)
    await seed(tmp_path, old)
    model = ScriptedModel([say("Well.")])
    server = await served(serve, **windowed(model))
    tab = await server.tab()
    await tab.ask("r1", *old, user_message("question", "u020"))
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert stored_ids(tmp_path)[:-1] == [*ids(old), "u020"]
    await tab.ask("r2", *old[:5])
    assert (await tab.done("r2"))["outcome"] == "completed", "a repetition of something long answered"
    assert len(stored_ids(tmp_path)) == 42
    model.assert_done()


@requirement("protocol:56")
async def test_an_old_message_is_answered_again_beside_its_old_answer(serve: Serve, tmp_path: Path) -> None:
    old = conversation(20)
    await seed(tmp_path, old)
    model = ScriptedModel([say("Other.")])
    server = await served(serve, **windowed(model, sent=6))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", *old[:7], trigger="regenerate-message")
    assert (await other.done("r1"))["outcome"] == "completed"
    assert asked(model) == ids(old[:7]), "seven messages fit"
    stored = await server.stored()
    assert ids(stored)[:-1] == ids(old[3:7])
    assert stored[-1]["parts"][-1]["text"] == "Other."
    assert other.frames[-2]["messages"] == stored
    assert set(stored_ids(tmp_path)) > set(ids(old)), "the old branch stays"

    later = await served(serve, **windowed(ScriptedModel([]), sent=6), data=await moved(server, tmp_path))
    assert await later.stored() == stored


async def moved(server: Serving, folder: Path) -> Path:
    """The folder of a server that was stopped."""
    await server.stop()
    return folder


async def test_an_old_question_is_edited_and_its_branch_is_what_is_shown(serve: Serve, tmp_path: Path) -> None:
    old = conversation(20)
    await seed(tmp_path, old)
    model = ScriptedModel([say("Other."), say("More.")])
    server = await served(serve, **windowed(model, sent=6))
    tab = await server.tab()
    await tab.ask("r1", *old[:6], {**old[6], "parts": [{"type": "text", "text": "changed!"}]})
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert asked(model)[:-1] == ids(old[:6])
    stored = await server.stored()
    assert ids(stored[:-2]) == ids(old[4:6])
    assert stored[-2]["parts"][0]["text"] == "changed!"
    await tab.ask("r2", *stored, user_message("question", "u-next"))
    assert (await tab.done("r2"))["outcome"] == "completed"
    assert asked(model)[:6] == ids(old[:6])


# ── order ───────────────────────────────────────────────────────────


class HeldStore(SqliteStore):
    """A store that answers certain queries when the test says so, or not at all."""

    holds: ClassVar[Callable[[Query[Any]], Gate | Exception | None]]

    async def read(self, query: Query[Any]) -> Any:
        held = type(self).holds(query)
        if isinstance(held, Exception):
            raise held
        if held is not None:
            await held.passed()
        return await super().read(query)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def hold(kind: type[Query[Any]], *answers: Gate | Exception) -> None:
        waiting = list(answers)
        HeldStore.holds = staticmethod(lambda query: waiting.pop(0) if isinstance(query, kind) and waiting else None)

    HeldStore.holds = staticmethod(lambda query: None)
    serving = importlib.import_module("tests.support.serving")
    monkeypatch.setattr(serving, "default_engine", lambda: Engine(open_store=HeldStore.open))
    return hold


async def test_what_comes_behind_a_request_that_reads_waits_for_it(
    serve: Serve, tmp_path: Path, hold: Callable[..., None]
) -> None:
    await seed(tmp_path, conversation(20))
    model = ScriptedModel([[say("One."), pause(Gate())], say("Two.")])
    server = await served(serve, **windowed(model))
    tab, other = await server.tab(), await server.tab()
    await other.opened()
    gate = Gate()
    hold(FindMessages, gate)
    await tab.ask("r1", user_message("question", "u020"))
    await gate.reached()
    await tab.cancel("r1")
    await tab.ask("r2", user_message("question", "u021"))
    await other.ask("r3", user_message("question", "u020"))
    late = await server.tab()
    assert len((await late.opened())[0]["messages"]) == 4, "a new tab is not held up"
    gate.open()
    assert (await tab.done("r1"))["outcome"] == "aborted", "the cancel found its request"
    assert (await tab.done("r2"))["outcome"] == "completed"
    await other.done("r3")
    assert stored_ids(tmp_path).count("u020") == 1
    users = [identifier for identifier in stored_ids(tmp_path) if identifier.startswith("u")]
    assert users[-2:] == ["u020", "u021"]


async def test_a_tab_that_goes_while_its_request_reads_leaves_the_request_behind(
    serve: Serve, tmp_path: Path, hold: Callable[..., None]
) -> None:
    await seed(tmp_path, conversation(20))
    server = await served(serve, **windowed(ScriptedModel([say("One.")])))
    tab, other = await server.tab(), await server.tab()
    gate = Gate()
    hold(FindMessages, gate)
    await tab.ask("r1", user_message("question", "u020"))
    await gate.reached()
    await tab.close()
    gate.open()
    assert (await other.done("r1"))["outcome"] == "completed"


async def test_a_conversation_that_is_cleared_while_a_request_reads_begins_anew_with_it(
    serve: Serve, tmp_path: Path, hold: Callable[..., None]
) -> None:
    @callable
    async def forget(self: Think) -> None:
        await self.clear_messages()

    await seed(tmp_path, conversation(20))
    model = ScriptedModel([say("One.")])
    server = await served(serve, **windowed(model, forget=forget))
    tab, other = await server.tab(), await server.tab()
    gate = Gate()
    hold(LoadBranch, gate)
    await tab.ask("r1", user_message("question", "u005"), trigger="regenerate-message")
    await gate.reached()
    await other.send({"type": "rpc", "id": "c1", "method": "forget", "args": []})
    await other.seen(lambda frame: frame["type"] == "rpc")
    gate.open()
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert asked(model) == ["u005"]
    assert len(await server.stored()) == 2


async def test_a_request_that_cannot_read_is_ended_with_an_error_and_the_next_one_works(
    serve: Serve, tmp_path: Path, hold: Callable[..., None], log: ErrorLog
) -> None:
    await seed(tmp_path, conversation(20))
    server = await served(serve, **windowed(ScriptedModel([say("One.")])))
    tab = await server.tab()
    hold(FindMessages, StorageError("secret path"))
    await tab.ask("r1", user_message("question", "u020"))
    done = await tab.done("r1")
    assert (done["error"], done["body"]) == (True, "The conversation could not be read.")
    log.expect("secret path")
    await tab.ask("r2", user_message("question", "u020"))
    assert (await tab.done("r2"))["outcome"] == "completed"


# ── the server's own code ───────────────────────────────────────────


class Archivist(Think):
    """Reads and writes messages that are not in memory."""

    hydration_byte_budget = 10 * SIZE

    @callable
    async def page(self, before: str | None, limit: int | None) -> list[str]:
        return ids(await self.get_messages(before=before, limit=limit))  # pyright: ignore[reportArgumentType]

    @callable
    async def window(self) -> list[str]:
        return ids(self.messages)  # pyright: ignore[reportArgumentType]

    @callable
    async def add(self, identifier: str, parent: str | None, mode: Any) -> None:
        message = user_message("question", identifier)
        await self.add_messages(message, parent=parent, mode=mode)

    @callable
    async def save(self, identifier: str) -> str:
        return (await self.save_messages(user_message("question", identifier))).status


@pytest.fixture
async def archive(serve: Serve, tmp_path: Path) -> Callable[..., Any]:
    """Calls a method of an agent with twenty turns behind it."""
    await seed(tmp_path, conversation(20))
    kind = type("Agent", (Archivist,), {"model": ScriptedModel([say("a" * 8)])})
    server = await serve(kind, limits=Limits(window=4 * SIZE))
    tab = await server.tab()
    count = iter(range(100))

    async def call_method(method: str, *args: Any) -> Any:
        number = f"c{next(count)}"
        await tab.send({"type": "rpc", "id": number, "method": method, "args": list(args)})
        reply = await tab.seen(lambda frame: frame["type"] == "rpc" and frame["id"] == number)
        return reply["result"] if reply["success"] and "result" in reply else reply

    return call_method


@requirement("engine:24")
async def test_code_reads_older_messages_page_by_page(archive: Callable[..., Any]) -> None:
    old = ids(conversation(20))
    assert await archive("window") == old[-4:]
    assert await archive("page", None, 6) == old[-6:]
    assert await archive("page", old[-6], 6) == old[-12:-6]
    assert await archive("page", old[2], 6) == old[:2]
    assert await archive("page", None, None) == old
    refused = await archive("page", "nowhere", 1)
    assert "There is no message 'nowhere'" in refused["error"]


@requirement("engine:22")
async def test_code_adds_messages_beside_older_ones(archive: Callable[..., Any], tmp_path: Path) -> None:
    old = ids(conversation(20))
    await archive("add", "u003", None, "append")
    assert stored_ids(tmp_path) == old, "one that is known is left alone"
    await archive("add", "u003", None, "upsert")
    assert stored_ids(tmp_path) == old
    await archive("add", "new", "a003", "append")
    assert await archive("window") == [*old[5:8], "new"]
    assert await archive("page", None, 3) == [*old[6:8], "new"]
    refused = await archive("add", "newer", "nowhere", "append")
    assert "There is no message 'nowhere'" in refused["error"]


async def test_a_turn_on_a_message_that_is_stored_already_adds_nothing(
    archive: Callable[..., Any], tmp_path: Path
) -> None:
    assert await archive("save", "u003") == "completed"
    assert len(stored_ids(tmp_path)) == 41


# ── after a crash ───────────────────────────────────────────────────


async def test_an_answer_that_a_crash_cut_off_goes_behind_a_question_that_is_not_held(
    serve: Serve, tmp_path: Path, log: ErrorLog
) -> None:
    old = conversation(5)
    waiting = [user_message("w" * 10 * SIZE, f"w{number}") for number in range(3)]
    turns = [
        opened_turn("r1", "running", "u-asked"),
        *(opened_turn(f"r-{m['id']}", "queued", m["id"]) for m in waiting),
    ]
    await seed(tmp_path, [*old, user_message("question", "u-asked"), *waiting], *turns, *said("r1", "Half an ans"))
    server = await served(serve, **windowed(ScriptedModel([]), held=1, sent=100))
    stored = await server.stored()
    assert ids(stored)[-1] == "w2"
    page = [row for row in stored_ids(tmp_path) if row != "m-r1"]
    assert page[-4:] == ["u-asked", "w0", "w1", "w2"]
    assert stored_ids(tmp_path)[-4:] == ["m-r1", "w0", "w1", "w2"], "the answer came before those that wait"


def opened_turn(request: str, status: str, question: str) -> OpenTurn:
    about = json.dumps({"parent": question, "own": [question], "origin": [question], "body": {}})
    return OpenTurn(request, status, "ws-chat", about, f"m-{request}", 1)


def said(request: str, text: str) -> Sequence[Operation]:
    chunks = [{"type": "start", "messageId": f"m-{request}"}, {"type": "text-delta", "id": "t", "delta": text}]
    return [AppendChunks(request, 0, json.dumps([json.dumps(one) for one in chunks]))]


async def test_another_answer_to_an_old_message_that_a_crash_cut_off_is_beside_the_old_one(
    serve: Serve, tmp_path: Path
) -> None:
    old = conversation(20)
    about = json.dumps({"parent": "u003", "own": [], "origin": ["u003"], "body": {}, "branches": True})
    turn = OpenTurn("r1", "running", "ws-chat", about, "m-r1", 1)
    await seed(tmp_path, old, turn, *said("r1", "Half"))
    server = await served(serve, **windowed(ScriptedModel([]), sent=6))
    stored = await server.stored()
    assert ids(stored) == [*ids(old[3:7]), "m-r1"]
    assert set(stored_ids(tmp_path)) == {*ids(old), "m-r1"}


# ── large, odd and damaged messages ─────────────────────────────────


@requirement("fault:PS-04")
async def test_files_are_kept_once_and_come_back_byte_for_byte(serve: Serve, tmp_path: Path) -> None:
    url = "data:image/png;base64," + "iVBORw0KGgo" * 100_000 + "AA=="
    url = url[: len("data:image/png;base64,") + (len(url) - len("data:image/png;base64,")) // 4 * 4]
    picture = {"type": "file", "mediaType": "image/png", "url": url, "filename": "Ä.png"}
    messages = [
        {"role": "user", "id": f"u{number}", "parts": [picture, {"type": "text", "text": "Look"}]}
        for number in range(3)
    ]
    model = ScriptedModel([say("One."), say("Two."), say("Three.")])
    limits = Limits(window=8_000_000, frame=64_000_000)
    server = await serve(agent(model), limits=limits)
    tab, other = await server.tab(), await server.tab()
    for number, message in enumerate(messages):
        await tab.ask(f"r{number}", message)
        await other.done(f"r{number}")
    assert [message for message in await server.stored() if message["role"] == "user"] == messages
    assert [message for message in model.requests[2].messages if message["role"] == "user"] == messages
    await server.stop()
    connection = sqlite3.connect(tmp_path / "perdure.db")
    assert connection.execute("select count(*), max(length(data)) < ? from attachment", (len(url),)).fetchone() == (
        1,
        1,
    )
    assert connection.execute("select max(length(body)) < 500 from message").fetchone() == (1,)
    connection.close()

    again = await serve(agent(ScriptedModel([])), limits=limits)
    text = (await again.get("/agents/agent/room/get-messages")).text
    for message in messages:
        assert json.dumps(message, ensure_ascii=False) in text, "as it was posted"
    tab = await again.tab()
    await tab.opened()
    await tab.clear()
    await tab.settle()
    assert await again.stored() == []
    connection = sqlite3.connect(tmp_path / "perdure.db")
    assert connection.execute("select count(*) from attachment").fetchone() == (0,)
    connection.close()


@requirement("fault:PS-05")
async def test_damaged_rows_are_left_out_with_a_warning_and_the_chat_goes_on(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await seed(tmp_path, conversation(4))
    connection = sqlite3.connect(tmp_path / "perdure.db", isolation_level=None)
    for pos, body in [
        (1, "{"),
        (2, "null"),
        (4, '{"role":"user","parts":[]}'),
        (5, '{"id":"a002","role":"x","parts":[]}'),
    ]:
        connection.execute("update message set body = ? where pos = ?", (body, pos))
    connection.execute("update message set body = ? where pos = 7", ('{"id":"a003","role":"assistant","parts":7}',))
    connection.close()
    model = ScriptedModel([say("Well.")])
    server = await serve(agent(model))
    assert ids(await server.stored()) == ["u000", "a001", "u003"]
    assert caplog.text.count("Left out a damaged message") == 5
    tab = await server.tab()
    await tab.ask("r1", user_message("question", "u004"))
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert asked(model) == ["u000", "a001", "u003", "u004"]
    assert len(stored_ids(tmp_path)) == 10


async def test_a_turn_whose_record_is_damaged_does_not_stop_the_agent(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await seed(tmp_path, conversation(1), opened_turn("r1", "running", "u000"), *said("r1", "Half"))
    connection = sqlite3.connect(tmp_path / "perdure.db", isolation_level=None)
    connection.execute("update turn set request = 'damaged'")
    connection.execute("update chunk set bodies = 'damaged'")
    connection.close()
    server = await serve(agent(ScriptedModel([say("Well.")])))
    assert ids(await server.stored()) == ["u000", "a000"]
    assert "What turn r1 was to do is damaged" in caplog.text
    tab = await server.tab()
    await tab.ask("r2", user_message("question", "u001"))
    assert (await tab.done("r2"))["outcome"] == "completed"


@requirement("fault:MQ-02", "engine:55", "engine:56")
async def test_odd_calls_in_stored_messages_are_put_right_once_for_everybody(serve: Serve, tmp_path: Path) -> None:
    inputs: list[Any] = ["", None, [], "text", '{"a":1}', 5]
    settled = [
        {"type": "tool-add", "toolCallId": f"c{n}", "state": "output-available", "input": given, "output": n}
        for n, given in enumerate(inputs)
    ]
    left_open = {"type": "tool-add", "toolCallId": "c9", "state": "input-available", "input": {"b": 2}}
    await seed(tmp_path, [user_message("question", "u0"), answer("a0", *settled, left_open)])
    model = ScriptedModel([say("One."), say("Two.")])
    server = await serve(agent(model))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", user_message("question", "u1"))
    await other.done("r1")
    assert strict_provider_errors(model.requests[0]) == []
    parts = model.requests[0].messages[1]["parts"]
    assert [part["input"] for part in parts] == [{}, {}, {}, {}, {"a": 1}, {}, {"b": 2}]
    assert parts[-1]["state"] == "output-error"
    stored = await server.stored()
    assert stored[1]["parts"] == parts
    shown = [frame["messages"] for frame in other.frames if frame["type"] == "cf_agent_chat_messages"]
    assert [messages[1]["parts"] == parts for messages in shown[1:]] == [False, True, True]
    await tab.ask("r2", user_message("question", "u2"))
    await tab.done("r2")
    assert (await server.stored())[:4] == stored


@requirement("fault:PS-17", "engine:60")
async def test_metadata_that_only_the_server_sets_is_not_taken_from_a_tab(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([say("Hm."), say("Hm.")])))
    tab = await server.tab()
    metadata = {"channel": "admin", "turnMetadata": {"user": "root"}, "ok": 1}
    await tab.ask("r1", {**user_message("question", "u0"), "metadata": metadata})
    await tab.done("r1")
    assert (await server.stored())[0]["metadata"] == {"ok": 1}
    edited = {**user_message("other", "u0"), "metadata": {"channel": "admin"}}
    await tab.ask("r2", edited)
    await tab.done("r2")
    assert "metadata" not in (await server.stored())[0]


@requirement("fault:PS-10")
async def test_signatures_of_reasoning_are_there_after_a_restart_and_empty_reasoning_is_not(
    serve: Serve, tmp_path: Path
) -> None:
    signed = {"anthropic": {"signature": "s"}}
    redacted = {"anthropic": {"redactedData": "r"}}
    moves = [
        chunk({"type": "reasoning-start", "id": "1"}),
        chunk({"type": "reasoning-delta", "id": "1", "delta": "Hm."}),
        chunk({"type": "reasoning-end", "id": "1", "providerMetadata": signed}),
        chunk({"type": "reasoning-start", "id": "2", "providerMetadata": redacted}),
        chunk({"type": "reasoning-end", "id": "2"}),
        chunk({"type": "reasoning-start", "id": "3"}),
        chunk({"type": "reasoning-end", "id": "3"}),
        say("So."),
    ]
    first = await serve(agent(ScriptedModel([moves])))
    tab = await first.tab()
    await tab.ask("r1", user_message("question", "u0"))
    await tab.done("r1")
    await first.stop()
    model = ScriptedModel([say("Next.")])
    second = await serve(agent(model))
    tab = await second.tab()
    await tab.ask("r2", user_message("question", "u1"))
    await tab.done("r2")
    reasoning = [part for part in model.requests[0].messages[1]["parts"] if part["type"] == "reasoning"]
    assert [part.get("providerMetadata") for part in reasoning] == [signed, redacted]


@requirement("fault:PS-06", "fault:PS-08", "fault:PS-09", "engine:52", "engine:53", "engine:54", "protocol:55")
async def test_what_a_page_says_of_answers_changes_none_and_adds_none(serve: Serve) -> None:
    done = {"type": "tool-add", "toolCallId": "c1", "state": "output-available", "input": {}, "output": 3}
    model = ScriptedModel([[call("add", {}, id="c1")], *(say("Sure") for _ in range(8))])

    server = await serve(agent(model))
    tab = await server.tab()
    for number in range(3):
        await tab.ask(f"r{number}", user_message("question", f"u{number}"))
        await tab.done(f"r{number}")
    stored = await server.stored()
    tool = next(part for part in stored[1]["parts"] if part["type"] == "tool-add")
    for number, stale in enumerate(
        [
            {**done, "state": "input-available"},
            {**done, "state": "approval-responded", "approval": {"id": "p", "approved": True}},
            {**done, "output": "forged"},
        ]
    ):
        posted = [
            stored[0],
            {**stored[1], "id": "tmp" if number == 0 else stored[1]["id"], "parts": [stale]},
            stored[2],
            stored[3],
            stored[4],
            {**stored[5], "id": "foreign"},
        ]
        await tab.ask(f"more{number}", *posted, user_message("question", f"more{number}"))
        assert (await tab.done(f"more{number}"))["outcome"] == "completed"
    now = await server.stored()
    assert now[:6] == stored
    assert len(now) == 12
    assert next(part for part in now[1]["parts"] if part["type"] == "tool-add") == tool
    assert all(strict_provider_errors(request) == [] for request in model.requests)


@requirement("fault:PS-01", "fault:PS-03", "engine:59")
async def test_large_results_are_kept_whole_and_shown_whole_until_they_are_old(serve: Serve, tmp_path: Path) -> None:
    text = "x" * 5_000_000
    table = {"rows": [{"row": number, "name": "n" * 80} for number in range(30_000)], "total": 9}

    @tool
    async def dump() -> str:
        """Much text."""
        return text

    @tool
    async def query() -> dict[str, Any]:
        """Many rows."""
        return table

    calls = [call("dump", id="c1"), call("query", id="c2")]
    model = ScriptedModel([calls, say("Read.")])
    first = await serve(agent(model, dump, query, truncation_step=1), limits=WIDE)
    tab = await first.tab()
    await tab.ask("r1", user_message("question", "u0"))
    assert (await tab.done("r1"))["outcome"] == "completed"
    assert outputs(model.requests[1].messages) == [text, table], "the turn itself uses all of it"
    await first.stop()

    model = ScriptedModel([say("Well.") for _ in range(3)])
    second = await serve(agent(model, dump, query, truncation_step=1), limits=WIDE)
    tab = await second.tab()
    for number in range(1, 4):
        await tab.ask(f"r{number + 1}", user_message("question", f"u{number}"))
        assert (await tab.done(f"r{number + 1}"))["outcome"] == "completed"
    assert outputs(model.requests[0].messages) == [text, table]
    cut, short = outputs(model.requests[2].messages)
    assert cut == "x" * 500 + "... [truncated 4999500 chars]"
    assert short["total"] == 9
    assert short["rows"][0] == table["rows"][0]
    assert len(json.dumps(short)) < 1_000
    assert outputs(await second.stored()) == [text, table]


def outputs(messages: Iterable[Any]) -> list[Any]:
    return [part["output"] for message in messages for part in message["parts"] if "output" in part]
