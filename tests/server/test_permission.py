"""Who may do what in a conversation: the application decides, frame by frame."""

import json
from typing import Any, get_args

import pytest

from perdure import App, ConfigurationError, Connection, Think, Tool, tool
from perdure.agent.permission import kind_of
from perdure.protocol import client_frames
from perdure.testing import Gate, ScriptedModel, call, pause, say
from tests.requirements import requirement
from tests.support import ErrorLog, Frame, Serve, Serving, Tab, agent, chat_request, text_of, user_message
from tests.support.tabs import chunks_of

pytestmark = pytest.mark.anyio


def watched(model: ScriptedModel, *tools: Tool) -> tuple[type[Think], list[str]]:
    """A class whose read-only connections may do nothing but watch, and what was asked for by them."""
    asked: list[str] = []

    def is_readonly(self: Think, connection: Connection) -> bool:
        return "viewer" in connection.request.query

    def accepts_chat_frame(self: Think, connection: Connection, kind: str) -> bool:
        if connection.readonly:
            asked.append(kind)
        return not connection.readonly

    return agent(model, *tools, is_readonly=is_readonly, accepts_chat_frame=accepts_chat_frame), asked


async def both(server: Serving) -> tuple[Tab, Tab]:
    """One that may write, and one that may not."""
    owner, viewer = await server.tab(), await server.tab("room?viewer=1")
    await owner.opened()
    await viewer.opened()
    return owner, viewer


def approval(call: str) -> Frame:
    return {"type": "cf_agent_tool_approval", "toolCallId": call, "approved": True, "autoContinue": True}


def result(call: str, output: str) -> Frame:
    answer = {"toolCallId": call, "toolName": "where", "output": output, "autoContinue": True}
    return {"type": "cf_agent_tool_result", **answer}


async def handled(tab: Tab) -> None:
    """Returns when all that the tab has sent was handled: a call of a method that is not there is answered."""
    await tab.send({"type": "rpc", "id": "none", "method": "none", "args": []})
    tab.frames.remove(await tab.seen(lambda frame: frame["type"] == "rpc"))


REFUSAL = {
    "type": "cf_agent_use_chat_response",
    "body": "You may not write in this conversation.",
    "done": True,
    "error": True,
    "outcome": "error",
}


def stored_frame(messages: list[Frame]) -> Frame:
    return {"type": "cf_agent_chat_messages", "messages": messages}


@requirement("fault:SC-11")
async def test_who_may_only_watch_changes_nothing_and_sees_the_stream(serve: Serve) -> None:
    gate = Gate()
    model = ScriptedModel([[say("one"), pause(gate), say(" two")]])
    kind, asked = watched(model)
    server = await serve(kind)
    owner, viewer = await both(server)
    question = user_message("Q")
    await owner.ask("R1", question)
    await viewer.delta("R1", "one")

    start, mark = len(viewer.frames), len(owner.frames)
    await viewer.ask("V1", question, user_message("mine"))
    await viewer.ask("V2", question, trigger="regenerate-message")
    await viewer.cancel("R1")
    await viewer.clear()
    await handled(viewer)
    snapshot = stored_frame([question])
    assert viewer.frames[start:] == [snapshot, {**REFUSAL, "id": "V1"}, snapshot, {**REFUSAL, "id": "V2"}, snapshot]
    assert asked == ["request", "request", "cancel", "clear"]
    await owner.settle()
    assert owner.frames[mark:] == [], "nobody else learns of it"

    gate.open()
    assert (await owner.done("R1"))["outcome"] == "completed"
    await viewer.done("R1")
    assert text_of(chunks_of(viewer.frames, "R1")) == "one two"
    stored = await server.stored()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert viewer.frames[-2] == stored_frame(stored)
    model.assert_done()


@requirement("fault:SC-11")
async def test_who_may_only_watch_decides_on_no_call(serve: Serve) -> None:
    paid: list[int] = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    asks = [call("pay", {"amount": 5}, id="c-pay"), call("where", id="c-where")]
    model = ScriptedModel([asks, [say("Done.")]])
    kind, asked = watched(model, pay)
    server = await serve(kind)
    owner, viewer = await both(server)
    tools = [{"name": "where", "description": "Where the user is.", "parameters": {"type": "object"}}]
    await owner.ask("R1", "Pay from here", clientTools=tools)
    await owner.done("R1")
    await viewer.done("R1")
    before = await server.stored()

    start, mark = len(viewer.frames), len(owner.frames)
    await viewer.send(approval("c-pay"))
    await viewer.send(result("c-where", "Mallory's"))
    await handled(viewer)
    assert viewer.frames[start:] == [stored_frame(before)] * 2, "its page shows again that they are open"
    assert asked == ["approval", "result"]
    assert await server.stored() == before
    await handled(owner)
    assert owner.frames[mark:] == []
    assert paid == []

    await owner.send(approval("c-pay"))
    await owner.send(result("c-where", "home"))
    await viewer.seen(lambda frame: frame.get("continuation") is True and frame["done"])
    outputs = [part["output"] for part in (await server.stored())[-1]["parts"] if "output" in part]
    assert sorted(outputs) == ["home", "paid"]
    assert paid == [5]
    assert text_of(json.loads(frame["body"]) for frame in viewer.frames if "seq" in frame) == "Done."


async def test_who_may_only_watch_can_come_back_to_a_stream(serve: Serve) -> None:
    gate = Gate()
    kind, asked = watched(ScriptedModel([[say("one"), pause(gate), say(" two")]]))
    server = await serve(kind)
    owner, _ = await both(server)
    await owner.ask("R1", "Q")
    await owner.delta("R1", "one")
    late = await server.tab("room?viewer=1")
    assert (await late.probe("p"))["type"] == "cf_agent_stream_resuming"
    await late.ack("R1")
    await handled(late)
    gate.open()
    await late.done("R1")
    assert text_of(chunks_of(late.frames, "R1")) == "one two"
    assert asked == []


async def test_each_kind_can_be_allowed_by_itself(serve: Serve) -> None:
    def accepts_chat_frame(self: Think, connection: Connection, kind: str) -> bool:
        return kind in connection.request.query.get("may", "")

    gate = Gate()
    model = ScriptedModel([[say("one"), pause(gate)], say("two")])
    server = await serve(agent(model, accepts_chat_frame=accepts_chat_frame))
    asking, stopping = await server.tab("room?may=request"), await server.tab("room?may=cancel,clear")
    await asking.ask("R1", "Q")
    await asking.delta("R1", "one")
    await asking.cancel("R1")
    await asking.clear()
    await handled(asking)
    assert (await server.stored())[0]["role"] == "user"
    await stopping.ask("R2", "mine")
    assert (await stopping.done("R2"))["error"] is True
    await stopping.cancel("R1")
    assert (await asking.done("R1"))["outcome"] == "aborted"
    await stopping.clear()
    await asking.seen(lambda frame: frame["type"] == "cf_agent_chat_clear")
    assert await server.stored() == []


async def test_a_hook_that_fails_keeps_the_frame_out(serve: Serve, log: ErrorLog) -> None:
    def accepts_chat_frame(self: Think, connection: Connection, kind: str) -> bool:
        raise LookupError("who is that?")

    server = await serve(agent(ScriptedModel([]), accepts_chat_frame=accepts_chat_frame))
    tab = await server.tab()
    await tab.ask("R1", "Q")
    assert (await tab.done("R1"))["body"] == "You may not write in this conversation."
    assert await server.stored() == []
    log.expect("accepts_chat_frame failed: the request was refused")


async def test_a_hook_that_would_have_to_wait_is_refused(serve: Serve, log: ErrorLog) -> None:
    async def accepts_chat_frame(self: Think, connection: Connection, kind: str) -> bool:
        return True

    with pytest.raises(ConfigurationError, match=r"Agent\.accepts_chat_frame\(\) is async"):
        App(agent(None, accepts_chat_frame=accepts_chat_frame))

    def hidden(self: Think, connection: Connection, kind: str) -> Any:
        return accepts_chat_frame(self, connection, kind)

    server = await serve(agent(ScriptedModel([]), accepts_chat_frame=hidden))
    tab = await server.tab()
    await tab.ask("R1", "Q")
    assert (await tab.done("R1"))["error"] is True
    log.expect("accepts_chat_frame must not be async")


async def test_a_refused_request_is_in_its_place_among_others(serve: Serve) -> None:
    kind, _ = watched(ScriptedModel([say("one")]))
    server = await serve(kind)
    owner, viewer = await both(server)
    await owner.ask("R1", "Q")
    await owner.done("R1")
    await viewer.done("R1")
    start = len(viewer.frames)
    body = json.dumps({"messages": [user_message("mine")]})
    await viewer.send_together(chat_request("V1", body), {"type": "cf_agent_chat_clear"}, chat_request("V2", body))
    await viewer.done("V2")
    snapshot = stored_frame(await server.stored())
    assert [frame.get("id") or frame for frame in viewer.frames[start:]] == [snapshot, "V1", snapshot, snapshot, "V2"]


KINDS = {
    '{"type":"cf_agent_use_chat_request","id":"r","init":{"method":"POST","body":"{}"}}': "request",
    '{"type":"cf_agent_chat_clear"}': "clear",
    '{"type":"cf_agent_chat_request_cancel","id":"r"}': "cancel",
    '{"type":"cf_agent_tool_result","toolCallId":"c"}': "result",
    '{"type":"cf_agent_tool_approval","toolCallId":"c","approved":true}': "approval",
    '{"type":"cf_agent_stream_resume_request"}': None,
    '{"type":"cf_agent_stream_resume_ack","id":"r"}': None,
    '{"type":"cf_agent_chat_messages","messages":[]}': None,
}


def test_every_frame_is_known_to_change_something_or_not() -> None:
    frames: list[Any] = [client_frames.parse(text) for text in KINDS]
    assert [kind_of(frame) for frame in frames] == list(KINDS.values())
    assert {type(frame) for frame in frames} == set(get_args(client_frames.ChatFrame))
