"""Messages that come while an answer is being made, as ``examples/strategies.py`` shows each way to treat them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.support.process import ServerProcess

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[..., ChatPage]

BUSY = 80
"""Words of the answer that the others overlap with: about two seconds."""


@pytest.fixture
def target() -> str:
    return "examples.strategies:app"


def overlap(open_tab: OpenTab, agent: str) -> tuple[ChatPage, ChatPage]:
    """A tab that has sent three messages more while an answer was being made, the last one ``recap``, and another."""
    tab, other = open_tab("overlap", agent), open_tab("overlap", agent)
    tab.say(f"long {BUSY}")
    other.expect_streaming("(1)")
    for text in ("tea", "coffee", "recap"):
        tab.send(text)
    return tab, other


def expect_alike(tab: ChatPage, other: ChatPage, *texts: str) -> None:
    """Wait for these messages in both tabs, the answer to the first of them aside; and after a reload."""
    for each in (tab, other):
        expect(each.messages).to_have_count(len(texts) + 1, timeout=20_000)
        each.expect_idle()
        shown = each.texts()
        assert shown[0] == f"long {BUSY}"
        assert len(shown[1].split()) == BUSY
        assert [shown[0], *shown[2:]] == list(texts)
    tab.reload()
    expect(tab.messages).to_have_count(len(texts) + 1)
    assert tab.texts() == other.texts()


def recap(*texts: str) -> str:
    return f"What I am shown of what you said: {' '.join(texts)}"


def small_talk(text: str) -> str:
    return f"You said “{text}”. I am the demo model, no AI, so I have no answer to that. Say help to see my rules."


def test_queue_answers_each_message_in_its_turn(open_tab: OpenTab) -> None:
    first = f"long {BUSY}"
    tab, other = overlap(open_tab, "queue")
    told = recap(first, "tea", "coffee", "recap")
    expect_alike(tab, other, first, "tea", small_talk("tea"), "coffee", small_talk("coffee"), "recap", told)


def test_latest_answers_the_newest_and_never_shows_the_others_to_the_model(open_tab: OpenTab) -> None:
    first = f"long {BUSY}"
    tab, other = overlap(open_tab, "latest")
    expect_alike(tab, other, first, "tea", "coffee", "recap", recap(first, "recap"))
    tab.say("recap")
    expect(tab.answer).to_contain_text("recap")
    tab.expect_idle()
    assert tab.texts()[-1] == recap(first, "recap", "recap")


def test_merge_answers_all_that_waited_in_one_turn(open_tab: OpenTab) -> None:
    first = f"long {BUSY}"
    tab, other = overlap(open_tab, "merge")
    expect_alike(tab, other, first, "tea", "coffee", "recap", recap(first, "tea", "coffee", "recap"))


def test_debounced_answers_the_newest_after_the_quiet(open_tab: OpenTab) -> None:
    first = f"long {BUSY}"
    tab, other = overlap(open_tab, "debounced")
    expect_alike(tab, other, first, "tea", "coffee", "recap", recap(first, "recap"))


def test_drop_takes_none_and_the_page_says_so(open_tab: OpenTab, server: ServerProcess) -> None:
    first = f"long {BUSY}"
    tab, other = overlap(open_tab, "drop")
    expect(tab.error).to_contain_text("The agent was busy and did not take your message")
    expect(tab.error).to_contain_text("recap")
    for each in (tab, other):
        each.expect_idle()
        expect(each.messages).to_have_count(2)
    expect(other.error).to_have_count(0)
    assert len(server.stored("drop", "overlap")) == 2
    tab.try_again()
    expect(tab.error).to_have_count(0)
    expect_alike(tab, other, first, "recap", recap(first, "recap"))
