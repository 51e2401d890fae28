"""The page at ``/`` as a person uses it: what it shows and what can be done on it, by its test ids."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.tool_card import ToolCard

__all__ = ["SLOW", "ChatPage"]

SCREENSHOTS = Path(__file__).parent / "screenshots"

OVERHANG = """() => Math.max(
    document.documentElement.scrollWidth - innerWidth,
    ...[...document.querySelectorAll(".tool-card *")].map((inner) => {
        const [part, card] = [inner, inner.closest(".tool-card")].map((each) => each.getBoundingClientRect());
        return Math.ceil(part.right - card.right);
    }),
)"""

SLOW = 20_000
"""Milliseconds that a whole answer, or a restart of the server, may take."""


class ChatPage:
    """One tab."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url
        self.messages = page.get_by_test_id("message")
        self.composer = page.get_by_test_id("composer")
        self.heading = page.get_by_role("heading", name="Start a conversation")
        self.error = page.get_by_test_id("error")
        self.activity = page.get_by_test_id("activity")
        self.tool_cards = page.get_by_test_id("tool-card")

    def open(self, name: str, agent: str = "") -> None:
        """Show a conversation, of the first agent class unless another is given."""
        self._page.goto(f"{self._url}/?name={name}&agent={agent}")
        self.expect_connection("connected")

    def reload(self) -> None:
        self._page.reload()
        self.expect_connection("connected")

    def close(self) -> None:
        self._page.close()

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        self._page.bring_to_front()
        for key in keys:
            self._page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type a text, wherever the focus is."""
        self._page.keyboard.type(text)

    def resize(self, width: int, height: int) -> None:
        self._page.set_viewport_size({"width": width, "height": height})

    @property
    def overhang(self) -> int:
        """By how many pixels something on the page is too wide for it, or for the card it is on."""
        return self._page.evaluate(OVERHANG)

    def run_script(self, script: str) -> None:
        """Change something in the browser."""
        self._page.evaluate(script)

    @property
    def focused(self) -> Locator:
        """What has the keyboard."""
        return self._page.locator(":focus")

    def screenshot(self, name: str) -> None:
        self._page.screenshot(path=SCREENSHOTS / f"{name}.png")

    # ── what it shows ───────────────────────────────────────────────

    @property
    def answer(self) -> Locator:
        """The newest answer."""
        return self.messages.last.and_(self._page.locator('[data-role="assistant"]'))

    def tool(self, name: str) -> ToolCard:
        """The newest call of a tool."""
        return ToolCard(self._page, name)

    def texts(self) -> list[str]:
        """What each message says, with whitespace as one space."""
        return [" ".join(text.split()) for text in self.messages.all_inner_texts()]

    def expect_connection(self, state: str) -> None:
        expect(self._page.get_by_test_id("status")).to_have_attribute("data-state", state, timeout=SLOW)

    def expect_streaming(self, text: str) -> None:
        """Wait until the newest answer has got to ``text`` and goes on."""
        expect(self.answer).to_contain_text(text, timeout=SLOW)
        expect(self.activity).to_contain_text("answering")

    def expect_answered(self, *texts: str) -> None:
        """Wait until there are as many messages as ``texts``, each with its text, and nothing goes on."""
        wanted = [re.compile(rf"^\s*{re.escape(text)}\s*$") for text in texts]
        expect(self.messages).to_have_text(wanted, timeout=SLOW)
        self.expect_idle()

    def expect_idle(self) -> None:
        expect(self.activity).to_be_empty(timeout=SLOW)

    def expect_waiting(self, text: str) -> None:
        """Wait until nothing runs, and it says that it waits for this."""
        expect(self.activity).to_have_text(f"Waiting for {text}", timeout=SLOW)

    # ── what can be done ────────────────────────────────────────────

    def say(self, text: str) -> None:
        """Send a message with Enter."""
        self.send(text)
        expect(self.messages.filter(has_text=text.splitlines()[0])).not_to_have_count(0)

    def send(self, text: str) -> None:
        """The same without waiting until it shows."""
        self.composer.fill(text)
        self.composer.press("Enter")

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
