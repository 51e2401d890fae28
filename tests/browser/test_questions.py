"""Calls that a person answers by hand: questions, and client tools that no page runs by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.process import ServerProcess

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[..., ChatPage]


@pytest.fixture
def target() -> str:
    return "tests.browser.app:app"


def test_a_question_is_answered_by_hand_after_a_reload_and_a_restart(open_tab: OpenTab, server: ServerProcess) -> None:
    tab, other = open_tab("ask"), open_tab("ask")
    tab.say('Ask the user "Coffee or tea?"')
    for each in (tab, other):
        expect(each.tool("ask_user").part("question")).to_have_text("Coffee or tea?")
        each.tool("ask_user").expect_status("Waiting for an answer")
        each.expect_waiting("your answer to ask_user")
    tab.reload()
    server.kill()
    server.start()
    for each in (tab, other):
        each.expect_connection("connected")
        each.expect_waiting("your answer to ask_user")
    tab.tool("ask_user").answer("Tea, please")
    for each in (tab, other):
        each.tool("ask_user").expect_status("Done")
        expect(each.tool("ask_user").part("tool-answer")).to_contain_text("Tea, please")
        each.tool("ask_user").expect_no_form()
        expect(each.answer.get_by_test_id("text")).to_have_text("Here is the result. ask_user: Tea, please.")
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    assert tab.texts() == other.texts()


def test_a_suggested_answer_takes_one_click(open_tab: OpenTab) -> None:
    tab = open_tab("options")
    tab.say('call ask_user {"question": "Coffee or tea?", "options": ["coffee", "tea"]}')
    tab.tool("ask_user").choose("tea")
    expect(tab.answer.get_by_test_id("text")).to_have_text("Here is the result. ask_user: tea.")
    tab.expect_idle()


def test_a_question_may_be_declined_and_the_conversation_goes_on_with_that(open_tab: OpenTab) -> None:
    tab, other = open_tab("decline"), open_tab("decline")
    tab.say('Ask the user "How old are you?"')
    tab.tool("ask_user").decline()
    for each in (tab, other):
        each.tool("ask_user").expect_status("Declined")
        expect(each.answer.get_by_test_id("text")).to_have_text("ask_user failed: The user declined to answer.")
        each.expect_idle()
    assert tab.texts() == other.texts()


def test_a_client_tool_that_the_page_does_not_know_can_be_given_a_result(open_tab: OpenTab) -> None:
    tab = open_tab("unknown", "baker")
    tab.say('call weigh {"thing": "cake"}')
    tab.expect_waiting("your answer to weigh")
    expect(tab.tool("weigh").part("tool-input")).to_contain_text('"thing": "cake"')
    tab.tool("weigh").answer('{"grams": 750}')
    tab.tool("weigh").expect_output('{ "grams": 750 }')
    expect(tab.answer.get_by_test_id("text")).to_have_text("Here is the result. weigh: grams 750.")
    tab.expect_idle()


def test_a_new_message_leaves_it_unanswered(open_tab: OpenTab) -> None:
    tab, other = open_tab("move-on"), open_tab("move-on")
    tab.say('Ask the user "Coffee or tea?"')
    tab.expect_waiting("your answer to ask_user")
    other.say("long 5")
    for each in (tab, other):
        expect(each.answer).to_have_text("(1) The kettle sings while")
        each.tool("ask_user").expect_status("Not answered")
        each.tool("ask_user").expect_no_form()
        each.expect_idle()
