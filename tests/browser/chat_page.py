"""The page at ``/`` as a person uses it: what it shows and what can be done on it, by its test ids."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

__all__ = ["ChatPage"]

SCREENSHOTS = Path(__file__).parent / "screenshots"

SLOW = 20_000
"""Milliseconds that a whole answer, or a restart of the server, may take."""


class ChatPage:
    """One tab."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url
        self.messages = page.get_by_test_id("message")
        self.composer = page.get_by_test_id("composer")
        self.error = page.get_by_test_id("error")
        self.tool_cards = page.get_by_test_id("tool-card")

    def open(self, name: str) -> None:
        """Show a conversation."""
        self._page.goto(f"{self._url}/?name={name}")
        self.expect_connection("connected")

    def reload(self) -> None:
        self._page.reload()
        self.expect_connection("connected")

    def screenshot(self, name: str) -> None:
        self._page.screenshot(path=SCREENSHOTS / f"{name}.png")

    # ── what it shows ───────────────────────────────────────────────

    @property
    def answer(self) -> Locator:
        """The newest answer."""
        return self.messages.last.and_(self._page.locator('[data-role="assistant"]'))

    def texts(self) -> list[str]:
        """What each message says, with whitespace as one space."""
        return [" ".join(text.split()) for text in self.messages.all_inner_texts()]

    def expect_connection(self, state: str) -> None:
        expect(self._page.get_by_test_id("status")).to_have_attribute("data-state", state, timeout=SLOW)

    def expect_streaming(self, text: str) -> None:
        """Wait until the newest answer has got to ``text`` and goes on."""
        expect(self.answer).to_contain_text(text, timeout=SLOW)
        expect(self._page.get_by_test_id("activity")).to_contain_text("answering")

    def expect_answered(self, *texts: str) -> None:
        """Wait until there are as many messages as ``texts``, each with its text, and nothing goes on."""
        wanted = [re.compile(rf"^\s*{re.escape(text)}\s*$") for text in texts]
        expect(self.messages).to_have_text(wanted, timeout=SLOW)
        self.expect_idle()

    def expect_idle(self) -> None:
        expect(self._page.get_by_test_id("activity")).to_be_empty(timeout=SLOW)

    # ── what can be done ────────────────────────────────────────────

    def say(self, text: str) -> None:
        """Send a message with Enter."""
        self.composer.fill(text)
        self.composer.press("Enter")
        expect(self.messages.filter(has_text=text)).not_to_have_count(0)

    def stop(self) -> None:
        """Stop the answer."""
        self._page.bring_to_front()  # a tab behind another draws a frame a second, and a click waits for frames
        self._page.get_by_test_id("stop").click()

    def try_again(self) -> None:
        """Ask once more for the answer that failed."""
        self._page.bring_to_front()
        self._page.get_by_test_id("retry").click()

    def clear(self) -> None:
        """Clear the conversation, and confirm it."""
        self._page.bring_to_front()
        self._page.get_by_test_id("clear").click()
        self._page.get_by_test_id("dialog-confirm").click()

    def expect_empty(self) -> None:
        expect(self._page.get_by_test_id("empty")).to_be_visible()
        expect(self.messages).to_have_count(0)
