"""Tools that run in the browser, the ways of the published hook: ``execute``, ``onToolCall``, and once approved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.process import ServerProcess

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[..., ChatPage]


def calls_of(server: ServerProcess, agent: str, name: str) -> list[dict[str, Any]]:
    """The stored tool parts."""
    return [
        part
        for message in server.stored(agent, name)
        for part in message["parts"]
        if str(part["type"]).startswith("tool-")
    ]


def test_a_tool_that_the_page_offers_runs_in_the_browser_and_the_answer_goes_on(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("offered"), open_tab("offered")
    tab.say("call getUserTimezone {}")
    for each in (tab, other):
        each.tool("getUserTimezone").expect_output("Asia/Tokyo")
        expect(each.answer.get_by_test_id("text")).to_have_text("Here is the result. getUserTimezone: Asia/Tokyo.")
        each.expect_idle()
    assert tab.texts() == other.texts()
    (call,) = calls_of(server, "assistant", "offered")
    assert (call["state"], call["output"]) == ("output-available", "Asia/Tokyo")
    shown = tab.texts()
    tab.reload()
    expect(tab.messages).to_have_count(2)
    assert tab.texts() == shown


def test_two_of_them_in_one_step_are_both_answered_before_it_goes_on(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("two-offered")
    tab.say("call getUserTimezone {}\ncall getLocalTime {}")
    expect(tab.answer.get_by_test_id("text")).to_contain_text("Here are the results:")
    tab.expect_idle()
    expect(tab.messages).to_have_count(2)
    timezone, time = calls_of(server, "assistant", "two-offered")
    assert timezone["output"] == "Asia/Tokyo"
    assert time["state"] == "output-available"


def test_a_tool_of_the_server_that_the_page_answers_through_on_tool_call(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("declared"), open_tab("declared")
    other.resize(700, 600)
    tab.say("What is the window size?")
    for each in (tab, other):
        each.tool("get_window_size").expect_status("Done")
        expect(each.answer.get_by_test_id("text")).to_contain_text("Here is the result. get_window_size: width")
        each.expect_idle()
    # Both have answered, and one of them was the first.
    (call,) = calls_of(server, "assistant", "declared")
    assert call["output"] in [{"width": 1000, "height": 760}, {"width": 700, "height": 600}]
    for each in (tab, other):
        each.tool("get_window_size").expect_output(f'"width": {call["output"]["width"]}')
    assert tab.texts() == other.texts()


def test_a_call_that_no_page_saw_is_answered_by_the_next_one(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("nobody-there")
    tab.say(f"think about {'tea and ' * 30} the window size")
    expect(tab.messages).to_have_count(2)
    tab.close()
    assert calls_of(server, "assistant", "nobody-there") == []
    late = open_tab("nobody-there")
    late.tool("get_window_size").expect_output('"width": 1000')
    expect(late.answer.get_by_test_id("text")).to_contain_text("width 1000, height 760.")
    late.expect_idle()


def test_a_tool_that_fails_in_the_browser_is_told_to_the_model(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("failing")
    tab.run_script("Object.defineProperty(window, 'innerWidth', { get() { throw new Error('No window here') } })")
    tab.say("What is the window size?")
    tab.tool("get_window_size").expect_status("Failed")
    expect(tab.tool("get_window_size").part("tool-error")).to_contain_text("No window here")
    expect(tab.answer.get_by_test_id("text")).to_have_text("get_window_size failed: No window here.")
    tab.expect_idle()
    (call,) = calls_of(server, "assistant", "failing")
    assert (call["state"], call["errorText"]) == ("output-error", "No window here")


def test_a_tool_that_needs_approval_runs_in_the_browser_once_it_has_it(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab, other = open_tab("approved"), open_tab("approved")
    tab.say("Show me the browser details")
    for each in (tab, other):
        each.tool("get_browser_details").expect_status("Needs approval")
        each.expect_waiting("your approval of get_browser_details")
    other.tool("get_browser_details").approve()
    for each in (tab, other):
        each.tool("get_browser_details").expect_output("languages")
        expect(each.answer.get_by_test_id("text")).to_contain_text("Here is the result. get_browser_details:")
        each.expect_idle()
    assert tab.texts() == other.texts()
    (call,) = calls_of(server, "assistant", "approved")
    assert call["approval"]["approved"] is True
    assert call["state"] == "output-available"


def test_a_denied_tool_of_the_browser_does_not_run(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("kept-private")
    tab.say("Show me the browser details")
    tab.tool("get_browser_details").deny()
    tab.tool("get_browser_details").expect_status("Denied")
    expect(tab.answer.get_by_test_id("text")).to_have_text("get_browser_details was not allowed.")
    tab.expect_idle()
    (call,) = calls_of(server, "assistant", "kept-private")
    assert call["state"] == "output-denied"
    assert "output" not in call
