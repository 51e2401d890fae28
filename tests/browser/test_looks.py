"""What asks for an answer fits a phone and a desktop, in light and dark. The pictures are for people to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.test_approvals import DELETE

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("browser")]

OpenTab = Callable[..., ChatPage]

SCREENS = {"desktop": {"width": 1000, "height": 760}, "phone": {"width": 360, "height": 740}}

LONG = "a-title-without-a-single-place-where-it-could-be-broken-" * 4


@pytest.fixture(params=["desktop-light", "desktop-dark", "phone-light", "phone-dark"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def look(kind: str) -> dict[str, Any]:
    screen, scheme = kind.split("-")
    touch = screen == "phone"
    return {"viewport": SCREENS[screen], "color_scheme": scheme, "has_touch": touch, "is_mobile": touch}


def test_everything_that_asks_fits_the_screen(open_tab: OpenTab, kind: str) -> None:
    tab = open_tab("looks")
    tab.screenshot(f"{kind}-empty")
    expect(tab.heading).to_be_in_viewport()
    assert tab.overhang <= 0

    tab.say(DELETE)
    tab.expect_waiting("your approval of delete_note")
    tab.screenshot(f"{kind}-approval")
    assert tab.overhang <= 0
    tab.tool("delete_note").edit(f'{{"title": "{LONG}"')
    tab.tool("delete_note").approve()
    expect(tab.tool("delete_note").part("problem")).to_be_visible()
    tab.screenshot(f"{kind}-editing")
    assert tab.overhang <= 0
    tab.tool("delete_note").deny(LONG)
    expect(tab.answer.get_by_test_id("text")).to_contain_text(LONG)
    tab.expect_idle()
    assert tab.overhang <= 0

    options = ["coffee", "tea", "whatever there is, as long as it is hot"]
    tab.say(f'call ask_user {{"question": "Coffee or tea? {LONG}", "options": {options}}}'.replace("'", '"'))
    tab.expect_waiting("your answer to ask_user")
    expect(tab.tool("ask_user").part("answer")).to_be_visible()
    tab.screenshot(f"{kind}-question")
    assert tab.overhang <= 0
    tab.say("Show me the browser details")
    tab.expect_waiting("your approval of get_browser_details")
    tab.tool("ask_user").expect_status("Not answered")
    tab.screenshot(f"{kind}-not-answered")
    assert tab.overhang <= 0
