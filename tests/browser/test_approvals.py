"""A person says whether a tool may run: on a card that looks alike in every tab, with a reason or other arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import SLOW, ChatPage
from tests.requirements import requirement
from tests.support.process import ServerProcess

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[..., ChatPage]

DELETE = 'Delete the note "important dates"'
DELETED = "Here is the result. delete_note: deleted important dates."


@pytest.fixture
def target() -> str:
    return "tests.browser.app:app"


def call_of(server: ServerProcess, agent: str, name: str) -> dict[str, Any]:
    """The only stored tool part."""
    parts = [part for message in server.stored(agent, name) for part in message["parts"]]
    (call,) = (part for part in parts if str(part["type"]).startswith("tool-"))
    return call


@requirement("fault:AP-20")
def test_the_second_of_three_tabs_approves_and_all_end_alike(open_tab: OpenTab, server: ServerProcess) -> None:
    tabs = [open_tab("approve") for _ in range(3)]
    tabs[0].say(DELETE)
    for tab in tabs:
        card = tab.tool("delete_note")
        card.expect_status("Needs approval")
        expect(card.part("tool-input")).to_contain_text('"title": "important dates"')
        tab.expect_waiting("your approval of delete_note")
    tabs[1].screenshot("approval")
    tabs[1].tool("delete_note").approve()
    for tab in tabs:
        tab.tool("delete_note").expect_output('"deleted": "important dates"')
        tab.tool("delete_note").expect_no_form()
        expect(tab.answer.get_by_test_id("text")).to_have_text(DELETED)
        tab.expect_idle()
        expect(tab.messages).to_have_count(2)
    assert tabs[0].texts() == tabs[1].texts() == tabs[2].texts()
    assert call_of(server, "assistant", "approve")["approval"]["approved"] is True
    tabs[0].say("Show my notebook")
    notes = tabs[0].answer.get_by_test_id("text")
    expect(notes).to_have_text("Here is the result. show_notebook: shopping Milk, bread, tea.")


def test_a_call_that_the_tool_does_not_gate_runs_at_once(open_tab: OpenTab) -> None:
    tab = open_tab("harmless")
    tab.say('Delete the note "shopping"')
    tab.tool("delete_note").expect_output('"deleted": "shopping"')
    tab.tool("delete_note").expect_no_form()
    tab.expect_idle()


def test_a_denial_with_a_reason_shows_everywhere_and_the_model_hears_of_it(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("deny"), open_tab("deny")
    tab.say(DELETE)
    tab.tool("delete_note").deny("I still need them")
    for each in (tab, other):
        card = each.tool("delete_note")
        card.expect_status("Denied")
        expect(card.part("tool-reason")).to_contain_text("I still need them")
        card.expect_no_form()
        expect(each.answer.get_by_test_id("text")).to_have_text("delete_note was not allowed: I still need them.")
        each.expect_idle()
    assert tab.texts() == other.texts()
    call = call_of(server, "assistant", "deny")
    assert call["state"] == "output-denied"
    assert (call["approval"]["approved"], call["approval"]["reason"]) == (False, "I still need them")
    shown = tab.texts()
    tab.reload()
    expect(tab.messages).to_have_count(2)
    assert tab.texts() == shown


@requirement("fault:AP-04")
def test_a_question_survives_a_reload_and_a_restart_of_the_server(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("restart")
    tab.say(DELETE)
    tab.expect_waiting("your approval of delete_note")
    before = call_of(server, "assistant", "restart")
    assert before["state"] == "approval-requested"
    assert before["approval"]["id"]

    tab.reload()
    tab.expect_waiting("your approval of delete_note")
    server.stop()
    tab.expect_connection("reconnecting")
    server.start()
    tab.expect_connection("connected")
    tab.expect_waiting("your approval of delete_note")
    server.kill()
    server.start()
    tab.reload()
    tab.expect_waiting("your approval of delete_note")
    expect(tab.error).to_have_count(0)
    assert call_of(server, "assistant", "restart") == before

    tab.tool("delete_note").approve()
    tab.tool("delete_note").expect_output('"deleted": "important dates"')
    expect(tab.answer.get_by_test_id("text")).to_have_text(DELETED)
    tab.expect_idle()
    expect(tab.messages).to_have_count(2)


def test_changed_arguments_are_what_runs_and_what_every_tab_shows(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("edit"), open_tab("edit")
    tab.say(DELETE)
    card = tab.tool("delete_note")
    card.edit('{"title": "shopping"}')
    expect(card.part("approve")).to_have_text("Approve with changes")
    card.approve()
    for each in (tab, other):
        each.tool("delete_note").expect_output('"deleted": "shopping"')
        expect(each.tool("delete_note").part("tool-input")).to_contain_text('"title": "shopping"')
        expect(each.answer.get_by_test_id("text")).to_have_text("Here is the result. delete_note: deleted shopping.")
        each.expect_idle()
    assert tab.texts() == other.texts()
    assert call_of(server, "assistant", "edit")["input"] == {"title": "shopping"}
    tab.say("Show my notebook")
    expect(tab.answer.get_by_test_id("text")).to_contain_text("important dates Rent on the first")


def test_arguments_that_are_no_json_or_do_not_fit_are_refused_and_can_be_put_right(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab = open_tab("refused")
    tab.say(DELETE)
    card = tab.tool("delete_note")
    card.edit('{"title": ')
    card.approve()
    expect(card.part("problem")).to_contain_text("This is not JSON")
    card.edit('["title"]')
    card.approve()
    expect(card.part("problem")).to_contain_text("must be a JSON object")
    card.edit('{"title": 7}')
    card.approve()
    expect(card.part("problem")).to_contain_text("title")
    assert call_of(server, "assistant", "refused")["state"] == "approval-requested"
    card.edit('{"title": "shopping"}')
    card.approve()
    card.expect_output('"deleted": "shopping"')
    tab.expect_idle()


def test_every_thing_on_the_card_can_be_done_with_the_keyboard(open_tab: OpenTab) -> None:
    tab = open_tab("keys")
    tab.say(DELETE)
    tab.expect_waiting("your approval of delete_note")
    expect(tab.composer).to_be_focused()
    tab.press("Shift+Tab", "Shift+Tab")
    expect(tab.focused).to_have_attribute("data-testid", "reason")
    tab.press("Shift+Tab", "Shift+Tab", "Shift+Tab")
    expect(tab.focused).to_have_attribute("data-testid", "edit-input")
    tab.press("Enter")
    expect(tab.focused).to_have_attribute("data-testid", "input-editor")
    tab.type("x")
    tab.press("Escape")
    expect(tab.tool("delete_note").part("tool-input")).to_contain_text('"title": "important dates"')
    expect(tab.focused).to_have_attribute("data-testid", "edit-input")
    tab.press("Tab", "Tab", "Tab")
    tab.type("By keyboard")
    tab.press("Enter")
    expect(tab.answer.get_by_test_id("text")).to_have_text("delete_note was not allowed: By keyboard.")
    expect(tab.focused).to_have_attribute("data-testid", "tool-card")

    tab.composer.focus()
    tab.type(DELETE)
    tab.press("Enter")
    tab.expect_waiting("your approval of delete_note")
    tab.press("Shift+Tab", "Shift+Tab", "Shift+Tab", "Shift+Tab")
    expect(tab.focused).to_have_text("Approve")
    tab.press("Enter")
    tab.tool("delete_note").expect_output('"deleted": "important dates"')


@requirement("fault:AP-01")
def test_an_approved_tool_shows_that_it_runs_and_then_its_result_also_after_a_reload(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("bake", "baker"), open_tab("bake", "baker")
    tab.say('call bake {"cakes": 3}')
    tab.tool("bake").approve()
    for each in (tab, other):
        each.tool("bake").expect_status("Approved, running")
        each.tool("bake").expect_no_form()
        expect(each.activity).to_contain_text("answering")
    tab.reload()
    tab.tool("bake").expect_status("Approved, running")
    tab.tool("bake").expect_no_form()
    httpx2.post(f"{server.url}/agents/baker/bake/ready").raise_for_status()
    for each in (tab, other):
        each.tool("bake").expect_output("cake 3")
        expect(each.answer.get_by_test_id("text")).to_have_text("Here is the result. bake: cake 1, cake 2, cake 3.")
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    assert tab.texts() == other.texts()
    call = call_of(server, "baker", "bake")
    assert (call["state"], call["input"], call["output"]) == (
        "output-available",
        {"cakes": 3},
        ["cake 1", "cake 2", "cake 3"],
    )
    tab.reload()
    tab.tool("bake").expect_output("cake 3")


@requirement("fault:RS-14")
def test_a_reload_while_it_goes_on_and_right_after_shows_what_is_stored(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("go-on", "baker"), open_tab("go-on", "baker")
    httpx2.post(f"{server.url}/agents/baker/go-on/ready").raise_for_status()
    tab.say('call bake {"cakes": 60}')
    tab.tool("bake").approve()
    expect(tab.answer.get_by_test_id("text")).to_contain_text("cake 10,", timeout=SLOW)
    tab.reload()
    told = f"Here is the result. bake: {', '.join(f'cake {number + 1}' for number in range(60))}."
    for each in (tab, other):
        expect(each.answer.get_by_test_id("text")).to_have_text(told, timeout=SLOW)
    tab.reload()
    for each in (tab, other):
        expect(each.answer.get_by_test_id("text")).to_have_text(told)
        each.tool("bake").expect_status("Done")
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    stored = [part for message in server.stored("baker", "go-on") for part in message["parts"]]
    assert [part["text"] for part in stored if part["type"] == "text"] == ['call bake {"cakes": 60}', told]


def test_stop_ends_an_approved_tool_that_runs(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("stop", "baker"), open_tab("stop", "baker")
    tab.say('call bake {"cakes": 1}')
    tab.tool("bake").approve()
    other.tool("bake").expect_status("Approved, running")
    other.stop()
    for each in (tab, other):
        each.tool("bake").expect_status("Interrupted")
        each.tool("bake").expect_no_form()
        each.expect_idle()
    assert call_of(server, "baker", "stop")["state"] == "output-error"
    tab.say("long 5")
    for each in (tab, other):
        expect(each.answer).to_have_text("(1) The kettle sings while")
        each.expect_idle()


@pytest.mark.parametrize("stopping", ["asking", "watching"])
def test_stop_ends_a_tool_that_runs_in_every_tab(open_tab: OpenTab, server: ServerProcess, stopping: str) -> None:
    asking, watching = open_tab("stop-tool", "baker"), open_tab("stop-tool", "baker")
    asking.say("call simmer {}")
    for each in (asking, watching):
        each.tool("simmer").expect_status("Running")
    (asking if stopping == "asking" else watching).stop()
    for each in (asking, watching):
        each.tool("simmer").expect_status("Interrupted")
        each.tool("simmer").expect_no_form()
        each.expect_idle()
    assert asking.texts() == watching.texts()


def test_a_tool_that_a_crash_cut_off_is_interrupted_in_every_tab(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("crash", "baker"), open_tab("crash", "baker")
    tab.say("call simmer {}")
    other.tool("simmer").expect_status("Running")
    server.kill()
    for each in (tab, other):
        each.expect_connection("reconnecting")
    server.start()
    late = open_tab("crash", "baker")
    for each in (tab, other, late):
        each.expect_connection("connected")
        each.tool("simmer").expect_status("Interrupted")
        each.tool("simmer").expect_no_form()
        expect(each.error).to_contain_text("interrupted")
    late.reload()
    late.tool("simmer").expect_status("Interrupted")
    assert call_of(server, "baker", "crash")["state"] == "output-error"


@pytest.mark.parametrize("deciding", ["asking", "watching"])
@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_while_other_tools_of_the_step_still_run(
    open_tab: OpenTab, server: ServerProcess, deciding: str, approved: bool
) -> None:
    asking, watching = open_tab("early", "baker"), open_tab("early", "baker")
    asking.say('call simmer {}\ncall delete_note {"title": "important dates"}')
    for each in (asking, watching):
        each.tool("simmer").expect_status("Running")
        each.tool("delete_note").expect_status("Needs approval")
    card = (asking if deciding == "asking" else watching).tool("delete_note")
    if approved:
        card.approve()
    else:
        card.deny("Too early")
    for each in (asking, watching):
        expect(each.tool("delete_note").part("tool-status")).not_to_have_text("Needs approval")
    httpx2.post(f"{server.url}/agents/baker/early/ready").raise_for_status()
    for each in (asking, watching):
        each.tool("simmer").expect_output("soup")
        if approved:
            each.tool("delete_note").expect_output('"deleted": "important dates"')
        else:
            each.tool("delete_note").expect_status("Denied")
            expect(each.tool("delete_note").part("tool-reason")).to_contain_text("Too early")
        expect(each.answer.get_by_test_id("text")).to_contain_text("simmer: soup")
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    assert asking.texts() == watching.texts()


@pytest.mark.parametrize("reason", ["", "Not now"])
def test_what_is_said_while_the_server_is_away_reaches_it_when_it_is_back(
    open_tab: OpenTab, server: ServerProcess, reason: str
) -> None:
    tab, other = open_tab("away"), open_tab("away")
    tab.say(DELETE)
    other.expect_waiting("your approval of delete_note")
    server.stop()
    for each in (tab, other):
        each.expect_connection("reconnecting")
    tab.tool("delete_note").deny(reason)
    server.start()
    for each in (tab, other):
        each.tool("delete_note").expect_status("Denied")
        expect(each.answer.get_by_test_id("text")).to_contain_text("delete_note was not allowed")
        each.expect_idle()
    assert tab.texts() == other.texts()


def test_a_question_that_nobody_answers_in_time_expires_in_every_tab(open_tab: OpenTab) -> None:
    tab, other = open_tab("expire", "hasty"), open_tab("expire", "hasty")
    tab.say(DELETE)
    for each in (tab, other):
        each.tool("delete_note").expect_status("Expired")
        each.tool("delete_note").expect_no_form()
        expect(each.answer.get_by_test_id("text")).to_contain_text("delete_note was not allowed")
        each.expect_idle()
    assert tab.texts() == other.texts()


def test_several_calls_of_one_step_are_answered_each_for_itself_and_then_it_goes_on_once(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("several"), open_tab("several")
    tab.say(
        'call delete_note {"title": "important dates"}\n'
        "call get_browser_details {}\n"
        'call ask_user {"question": "Sure?"}'
    )
    for each in (tab, other):
        each.expect_waiting("your approval of delete_note, get_browser_details, and your answer to ask_user")
    tab.tool("delete_note").approve()
    other.expect_waiting("your approval of get_browser_details, and your answer to ask_user")
    other.tool("delete_note").expect_status("Approved")
    other.tool("get_browser_details").deny("Private")
    tab.tool("ask_user").answer("Yes, quite")
    for each in (tab, other):
        each.tool("delete_note").expect_output('"deleted": "important dates"')
        each.tool("get_browser_details").expect_status("Denied")
        expect(each.tool("ask_user").part("tool-answer")).to_contain_text("Yes, quite")
        text = each.answer.get_by_test_id("text")
        expect(text).to_contain_text("Not everything went well:")
        expect(text).to_contain_text("get_browser_details was not allowed: Private")
        expect(text).to_contain_text("ask_user: Yes, quite")
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    assert tab.texts() == other.texts()


def test_a_new_message_leaves_the_question_unanswered_and_says_so(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("move-on"), open_tab("move-on")
    tab.say(DELETE)
    for each in (tab, other):
        each.expect_waiting("your approval of delete_note")
    tab.say("long 5")
    for each in (tab, other):
        expect(each.answer).to_have_text("(1) The kettle sings while")
        each.tool("delete_note").expect_status("Not answered")
        each.tool("delete_note").expect_no_form()
        each.expect_idle()
    assert tab.texts() == other.texts()
    assert call_of(server, "assistant", "move-on")["state"] == "output-error"
    shown = tab.texts()
    tab.reload()
    expect(tab.messages).to_have_count(4)
    assert tab.texts() == shown


def test_clearing_ends_the_question_in_both_tabs(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("clear"), open_tab("clear")
    tab.say(DELETE)
    for each in (tab, other):
        each.expect_waiting("your approval of delete_note")
    other.clear()
    for each in (tab, other):
        each.expect_empty()
        each.expect_idle()
    tab.say(DELETE)
    tab.tool("delete_note").approve()
    tab.tool("delete_note").expect_output('"deleted": "important dates"')
