"""Which calls a person is asked about: ``needs_approval`` of every kind of tool."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from perdure import Think, Tool, ToolContext, client_tool, tool
from perdure.testing import ScriptedModel, call, say
from tests.agent.deciding import approval, check_prompts, continued, nothing_comes, remover, result, stored_part
from tests.requirements import requirement
from tests.support import ErrorLog, Serve, agent, chunks_of

pytestmark = pytest.mark.anyio


class Payment(BaseModel):
    amount: int = Field(ge=0)
    to: str = "Ann"


class PaymentDict(TypedDict):
    amount: int


@dataclass
class PaymentData:
    amount: int


SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def function(ran: list[Any], needs: Any) -> Any:
    @tool(needs_approval=needs)
    def pay(amount: int, to: str = "Ann") -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    return pay


def declared(schema: Any) -> Any:
    def make(ran: list[Any], needs: Any) -> Any:
        def pay(payment: Any) -> str:
            amount = payment["amount"] if isinstance(payment, dict) else payment.amount
            ran.append(amount)
            return f"paid {amount}"

        return Tool("pay", description="Pay.", input_schema=schema, execute=pay, needs_approval=needs)

    return make


async def later(answer: bool) -> bool:
    await asyncio.sleep(0)
    return answer


KINDS: list[tuple[Any, Any]] = [
    (function, lambda amount: amount > 1000),
    (function, lambda amount: later(amount > 1000)),
    (declared(Payment), lambda payment: payment.amount > 1000),
    (declared(PaymentDict), lambda payment: payment["amount"] > 1000),
    (declared(PaymentData), lambda payment: later(payment.amount > 1000)),
    (declared(SCHEMA), lambda payment: payment["amount"] > 1000),
]


@requirement("fault:AP-01", "fault:AP-03", "protocol:76", "engine:67", "engine:68")
@pytest.mark.parametrize(
    ("make", "needs"),
    KINDS,
    ids=["function", "async predicate", "pydantic model", "TypedDict", "dataclass, async predicate", "JSON Schema"],
)
async def test_the_predicate_decides_for_each_call_by_its_arguments(serve: Serve, make: Any, needs: Any) -> None:
    ran: list[Any] = []
    model = ScriptedModel([[call("pay", {"amount": 1}, id="c1"), call("pay", {"amount": 5000}, id="c2")], say("Done.")])
    server = await serve(agent(model, make(ran, needs)))
    tab, other = await server.tab(), await server.tab()
    await tab.ask("r1", "Pay both.")
    await tab.done("r1")
    assert ran == [1]
    assert [c["toolCallId"] for c in chunks_of(tab.frames, "r1") if c["type"] == "tool-approval-request"] == ["c2"]
    assert (await stored_part(server, "c1"))["output"] == "paid 1"
    waiting = await stored_part(server, "c2")
    assert (waiting["state"], "output" in waiting) == ("approval-requested", False)
    await nothing_comes(tab)
    await tab.send(approval("c2"))
    done = await continued(other)
    assert ran == [1, 5000]
    chunks = chunks_of(other.frames, done["id"])
    assert [c["type"] for c in chunks][:2] == ["start", "tool-output-available"]
    assert chunks[1]["output"] == "paid 5000"
    part = await stored_part(server, "c2")
    assert (part["state"], part["output"]) == ("output-available", "paid 5000")
    assert part["approval"] == {"id": waiting["approval"]["id"], "approved": True}
    check_prompts(model.requests)
    model.assert_done()


@pytest.mark.parametrize(("needs", "waits"), [(True, True), (False, False)])
async def test_a_tool_always_needs_approval_or_never(serve: Serve, needs: bool, waits: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("Gone.")])
    server = await serve(agent(model, remover(ran, needs)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert ran == ([] if waits else ["x"])
    assert len(model.requests) == (1 if waits else 2)


@requirement("fault:AP-08")
async def test_a_call_that_was_approved_is_not_asked_about_again(serve: Serve) -> None:
    ran: list[Any] = []
    asked: list[str] = []

    def always(path: str) -> bool:
        asked.append(path)
        return True

    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("Gone.")])
    server = await serve(agent(model, remover(ran, always)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1"))
    await continued(tab)
    await nothing_comes(tab)
    assert (ran, asked) == (["x"], ["x"])
    model.assert_done()


# ── methods and their predicates ────────────────────────────────────


class Treasurer(Think):
    limit = 1000
    ran: list[Any]

    def get_tools(self) -> list[Any]:
        return [self.pay, self.refund, self.note]

    def _is_large(self, amount: int) -> bool:
        return amount > self.limit

    @tool(needs_approval=_is_large)
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.ran.append(("pay", amount))
        return "paid"

    @tool(needs_approval=lambda amount, ctx: amount > ctx.agent.limit)
    async def refund(self, amount: int, ctx: ToolContext) -> str:
        """Refund."""
        self.ran.append(("refund", amount))
        return "refunded"

    @staticmethod
    async def _is_long(text: str, call: ToolContext) -> bool:
        assert call.tool_call_id.startswith("c")
        assert [message["role"] for message in call.messages] == ["user", "assistant"]
        return len(text) > call.agent.limit

    @tool(needs_approval=_is_long)
    async def note(self, text: str) -> str:
        """Note."""
        self.ran.append(("note", len(text)))
        return "noted"


@requirement("fault:AP-03")
async def test_predicates_of_methods_may_be_methods_and_may_look_at_the_agent(serve: Serve) -> None:
    small = [
        call("pay", {"amount": 1}, id="c1"),
        call("refund", {"amount": 2}, id="c2"),
        call("note", {"text": "x"}, id="c3"),
    ]
    large = [
        call("pay", {"amount": 1001}, id="c4"),
        call("refund", {"amount": 1002}, id="c5"),
        call("note", {"text": "x" * 1003}, id="c6"),
    ]
    model = ScriptedModel([[*small, *large], say("Done.")])
    kind = type("Agent", (Treasurer,), {"model": model, "ran": []})
    server = await serve(kind)
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert sorted(kind.ran) == [("note", 1), ("pay", 1), ("refund", 2)]
    for identifier in ("c4", "c5", "c6"):
        assert (await stored_part(server, identifier))["state"] == "approval-requested"
        await tab.send(approval(identifier))
    await continued(tab)
    assert sorted(kind.ran[3:]) == [("note", 1003), ("pay", 1001), ("refund", 1002)]


async def test_a_predicate_is_given_the_arguments_as_the_tool_is_with_its_defaults(serve: Serve) -> None:
    given: list[Any] = []

    @tool(needs_approval=lambda **arguments: given.append(arguments))
    async def pay(amount: float, to: Annotated[str, Field(min_length=1)] = "Ann") -> str:
        """Pay."""
        return "paid"

    model = ScriptedModel([call("pay", {"amount": "5"}, id="c1"), say("Done.")])
    server = await serve(agent(model, pay))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert given == [{"amount": 5.0, "to": "Ann"}]
    assert (await stored_part(server))["output"] == "paid"


async def test_a_predicate_cannot_change_what_will_run(serve: Serve) -> None:
    ran: list[Any] = []

    def needs(order: dict[str, Any]) -> bool:
        order["items"].append("a yacht")
        return True

    schema = {"type": "object", "properties": {"items": {"type": "array"}}}
    order = Tool("order", description="Order.", input_schema=schema, execute=ran.append, needs_approval=needs)
    model = ScriptedModel([call("order", {"items": ["tea"]}, id="c1"), say("Done.")])
    server = await serve(agent(model, order))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert (await stored_part(server))["input"] == {"items": ["tea"]}
    await tab.send(approval("c1"))
    await continued(tab)
    assert ran == [{"items": ["tea"]}]


# ── predicates that do not answer ───────────────────────────────────


def raises(path: str) -> bool:
    raise KeyError(path)


async def raises_later(path: str) -> bool:
    await asyncio.sleep(0)
    raise RuntimeError("no connection")


async def cancelled(path: str) -> bool:
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    return await task


def leaves(path: str) -> bool:
    raise SystemExit(3)


class NoBool:
    def __bool__(self) -> bool:
        raise ValueError("ambiguous")


BROKEN = {
    "raises": raises,
    "raises later": raises_later,
    "is cancelled": cancelled,
    "ends the process": leaves,
    "wants other arguments": lambda file: False,
    "gives no bool": lambda path: NoBool(),
}


@requirement("fault:AP-18")
@pytest.mark.parametrize("needs", BROKEN.values(), ids=BROKEN.keys())
async def test_a_predicate_that_fails_counts_as_yes_and_the_turn_goes_on(
    serve: Serve, log: ErrorLog, needs: Any
) -> None:
    ran: list[Any] = []
    calls = [call("remove", {"path": "x"}, id="c1"), call("look", id="c2")]

    @tool
    async def look() -> str:
        """Look."""
        return "nothing"

    model = ScriptedModel([calls, say("Done.")])
    server = await serve(agent(model, remover(ran, needs), look))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    log.expect("needs_approval of tool remove failed")
    assert ran == []
    assert (await stored_part(server, "c1"))["state"] == "approval-requested"
    assert (await stored_part(server, "c2"))["output"] == "nothing"
    await tab.send(approval("c1", approved=False))
    await continued(tab)
    assert ran == []
    check_prompts(model.requests)


@pytest.mark.parametrize(
    ("given", "waits"), [("yes", True), (1, True), ([0], True), ("", False), (0, False), (None, False)]
)
async def test_a_predicate_may_give_anything_that_is_true_or_false(serve: Serve, given: Any, waits: bool) -> None:
    ran: list[Any] = []
    model = ScriptedModel([call("remove", {"path": "x"}, id="c1"), say("Done.")])
    server = await serve(agent(model, remover(ran, lambda: given)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert ran == ([] if waits else ["x"])


async def test_a_predicate_can_be_stopped_with_its_turn(serve: Serve) -> None:
    ran: list[Any] = []
    asked = asyncio.Event()

    async def thinks(path: str) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return False

    model = ScriptedModel([call("remove", {"path": "x"}, id="c1")])
    server = await serve(agent(model, remover(ran, thinks)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await asked.wait()
    await tab.cancel("r1")
    assert (await tab.done("r1"))["outcome"] == "aborted"
    assert ran == []
    assert (await stored_part(server))["state"] == "output-error"


async def test_arguments_that_do_not_fit_are_the_models_mistake_and_nobody_is_asked(serve: Serve) -> None:
    ran: list[Any] = []
    model = ScriptedModel(
        [
            [call("remove", {"path": ["x"]}, id="c1"), call("remove", {"path": "x", "force": True}, id="c2")],
            say("Sorry."),
        ]
    )
    server = await serve(agent(model, remover(ran)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    assert (await tab.done("r1"))["outcome"] == "completed"
    for identifier, field in (("c1", "path"), ("c2", "force")):
        part = await stored_part(server, identifier)
        assert part["state"] == "output-error"
        assert field in part["errorText"]
        assert "approval" not in part
    assert ran == []
    check_prompts(model.requests)


# ── client tools ────────────────────────────────────────────────────


@requirement("fault:AP-03", "protocol:67", "engine:74")
@pytest.mark.parametrize("schema", [Payment, PaymentDict, PaymentData, SCHEMA])
async def test_a_client_tool_may_need_approval_before_the_page_answers(serve: Serve, schema: Any) -> None:
    def large(payment: Any) -> bool:
        return (payment["amount"] if isinstance(payment, dict) else payment.amount) > 1000

    pay = client_tool("pay", "Pay with the phone.", schema, needs_approval=large)
    model = ScriptedModel([[call("pay", {"amount": 1}, id="c1"), call("pay", {"amount": 2000}, id="c2")], say("Paid.")])
    server = await serve(agent(model, pay))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    assert (await stored_part(server, "c1"))["state"] == "input-available"
    assert (await stored_part(server, "c2"))["state"] == "approval-requested"
    await tab.send(approval("c2"))
    await tab.send(result("c1", "paid 1"))
    await tab.settle()
    assert (await stored_part(server, "c2"))["state"] == "approval-responded"
    assert len(model.requests) == 1, "the page has not paid yet"
    await tab.send(result("c2", "paid 2000"))
    await continued(tab)
    assert [(await stored_part(server, each))["output"] for each in ("c1", "c2")] == ["paid 1", "paid 2000"]
    check_prompts(model.requests)
    model.assert_done()


@requirement("engine:74")
async def test_a_client_tool_that_was_denied_takes_no_result(serve: Serve) -> None:
    model = ScriptedModel([call("pay", {}, id="c1"), say("As you like.")])
    server = await serve(agent(model, client_tool("pay", needs_approval=True)))
    tab = await server.tab()
    await tab.ask("r1", "Go")
    await tab.done("r1")
    await tab.send(approval("c1", approved=False))
    await tab.send(result("c1", "paid"))
    await continued(tab)
    part = await stored_part(server)
    assert (part["state"], "output" in part) == ("output-denied", False)
    check_prompts(model.requests)
    model.assert_done()
