"""The main job in a real browser: a conversation that survives reloads, restarts and crashes, in several tabs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.requirements import requirement
from tests.support.process import ServerProcess

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[[str], ChatPage]

SENTENCE = "The kettle sings while rain taps on the window."


def long_text(words: int) -> str:
    """What the demo model answers to ``long <words>``: numbered sentences of ten words."""
    endless = itertools.chain.from_iterable([f"({n})", *SENTENCE.split()] for n in itertools.count(1))
    return " ".join(itertools.islice(endless, words))


def stored_texts(server: ServerProcess, name: str) -> list[str]:
    """What each stored message says, as ``ChatPage.texts`` gives what is shown."""
    said = ("".join(part.get("text", "") for part in message["parts"]) for message in server.stored("assistant", name))
    return [" ".join(text.split()) for text in said]


def test_an_answer_with_a_tool_call_shows_in_two_tabs(open_tab: OpenTab) -> None:
    asking, watching = open_tab("two-tabs"), open_tab("two-tabs")
    asking.say("What's the weather in Paris?")
    for tab in (asking, watching):
        card = tab.tool_cards.first
        expect(card).to_have_attribute("data-tool", "get_weather")
        expect(card).to_have_attribute("data-state", "output-available")
        expect(card.get_by_test_id("tool-input")).to_contain_text('"city": "Paris"')
        expect(card.get_by_test_id("tool-output")).to_contain_text("temperature")
        expect(tab.answer.get_by_test_id("text")).to_contain_text("Paris")
        tab.expect_idle()

    watching.say("long 60")
    asking.expect_streaming("(2)")
    asking.screenshot("streaming")
    for tab in (asking, watching):
        expect(tab.answer).to_have_text(long_text(60))
        tab.expect_idle()
        expect(tab.messages).to_have_count(4)
    assert asking.texts() == watching.texts()
    asking.screenshot("two-tabs")


@requirement("protocol:97")
def test_a_reload_in_mid_stream_loses_and_doubles_nothing(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("reload")
    tab.say("long 200")
    tab.expect_streaming("(4)")
    tab.reload()
    tab.expect_streaming("(8)")
    tab.expect_answered("long 200", long_text(200))
    assert stored_texts(server, "reload") == ["long 200", long_text(200)]
    tab.reload()
    tab.expect_answered("long 200", long_text(200))


def test_a_restart_of_the_server_keeps_everything_and_the_page_reconnects(
    open_tab: OpenTab, server: ServerProcess
) -> None:
    tab = open_tab("restart")
    tab.say("What's the weather in Paris?")
    expect(tab.tool_cards).to_have_count(1)
    expect(tab.answer.get_by_test_id("text")).to_contain_text("Paris")
    tab.expect_idle()
    before = tab.texts()

    server.stop()
    tab.expect_connection("reconnecting")
    server.start()
    tab.expect_connection("connected")
    assert tab.texts() == before
    tab.say("long 12")
    expect(tab.answer).to_have_text(long_text(12))
    tab.expect_idle()

    tab.reload()
    expect(tab.messages).to_have_count(4)
    assert tab.texts() == [*before, "long 12", long_text(12)]


def test_stop_keeps_what_was_said(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("stop")
    tab.say("long 2000")
    tab.expect_streaming("(3)")
    tab.stop()
    tab.expect_idle()
    expect(tab.error).to_have_count(0)
    question, answer = tab.texts()
    assert question == "long 2000"
    assert answer.startswith(f"(1) {SENTENCE} (2) {SENTENCE} (3)")

    tab.reload()
    expect(tab.messages).to_have_count(2)
    kept = tab.texts()[1]
    # The hook drops what was on its way when it stopped: a word or two, which the server has kept.
    assert kept.startswith(answer)
    assert long_text(400).startswith(kept)
    tab.say("long 5")
    tab.expect_answered("long 2000", kept, "long 5", long_text(5))
    assert stored_texts(server, "stop") == ["long 2000", kept, "long 5", long_text(5)]


def test_another_tab_can_stop_the_answer(open_tab: OpenTab, server: ServerProcess) -> None:
    asking, watching = open_tab("stop-elsewhere"), open_tab("stop-elsewhere")
    asking.say("long 2000")
    watching.expect_streaming("(3)")
    watching.stop()
    for tab in (asking, watching):
        tab.expect_idle()
    kept = stored_texts(server, "stop-elsewhere")[1]
    assert kept.startswith(f"(1) {SENTENCE} (2) {SENTENCE}")
    assert len(kept) < len(long_text(400))
    for tab in (asking, watching):
        expect(tab.answer).to_have_text(kept)


def test_an_error_of_the_model_shows_and_the_next_message_works(open_tab: OpenTab) -> None:
    tab, other = open_tab("error"), open_tab("error")
    tab.say("error The model is overloaded.")
    for each in (tab, other):
        expect(each.error).to_contain_text("The model is overloaded.")
    tab.screenshot("error")
    tab.say("long 5")
    tab.expect_answered("error The model is overloaded.", "long 5", long_text(5))
    for each in (tab, other):
        expect(each.error).to_have_count(0)


def test_clearing_empties_both_tabs(open_tab: OpenTab, server: ServerProcess) -> None:
    clearing, other = open_tab("clear"), open_tab("clear")
    clearing.say("long 5")
    for tab in (clearing, other):
        tab.expect_answered("long 5", long_text(5))
    clearing.clear()
    for tab in (clearing, other):
        tab.expect_empty()
    assert server.stored("assistant", "clear") == []


def test_after_kill_9_in_mid_stream_the_conversation_is_consistent(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("crash")
    tab.say("long 2000")
    tab.expect_streaming("(5)")
    server.kill()
    tab.expect_connection("reconnecting")
    server.start()
    tab.expect_connection("connected")
    expect(tab.error).to_contain_text("interrupted")
    tab.screenshot("after-kill-9")

    tab.reload()
    tab.expect_idle()
    expect(tab.messages.first).to_have_text("long 2000")
    shown = tab.texts()
    assert shown == stored_texts(server, "crash")
    assert len(shown) <= 2
    assert all(long_text(2000).startswith(answer) for answer in shown[1:])
    tab.say("long 5")
    tab.expect_answered(*shown, "long 5", long_text(5))
    assert stored_texts(server, "crash") == [*shown, "long 5", long_text(5)]


def test_try_again_answers_what_a_crash_interrupted(open_tab: OpenTab, server: ServerProcess) -> None:
    tab = open_tab("again")
    tab.say("long 100")
    tab.expect_streaming("(2)")
    server.kill()
    tab.expect_connection("reconnecting")
    server.start()
    expect(tab.error).to_contain_text("interrupted")
    tab.try_again()
    tab.expect_answered("long 100", long_text(100))
    expect(tab.error).to_have_count(0)
    assert stored_texts(server, "again") == ["long 100", long_text(100)]
