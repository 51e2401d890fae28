"""One tool call on the page: what it shows, and what can be said to it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

__all__ = ["ToolCard"]

SLOW = 20_000


class ToolCard:
    """The newest card of a tool in one tab."""

    def __init__(self, page: Page, tool: str) -> None:
        self._page = page
        self.card = page.locator(f'[data-testid="tool-card"][data-tool="{tool}"]').last

    def part(self, name: str) -> Locator:
        """Something on it, by its test id."""
        return self.card.get_by_test_id(name)

    def expect_status(self, label: str) -> None:
        expect(self.part("tool-status")).to_have_text(label, timeout=SLOW)

    def expect_output(self, text: str) -> None:
        self.expect_status("Done")
        expect(self.part("tool-output")).to_contain_text(text)

    def expect_no_form(self) -> None:
        """Nothing can be said to it any more."""
        expect(self.part("approval")).to_have_count(0)
        expect(self.part("answer-form")).to_have_count(0)

    # ── what can be said ────────────────────────────────────────────

    def approve(self) -> None:
        self._press("approve")

    def deny(self, reason: str = "") -> None:
        self.part("reason").fill(reason)
        self._press("deny")

    def edit(self, arguments: str) -> None:
        """Change the arguments, without approving them."""
        if self.part("input-editor").count() == 0:
            self._press("edit-input")
        self.part("input-editor").fill(arguments)

    def answer(self, text: str) -> None:
        self.part("answer").fill(text)
        self._press("answer-send")

    def choose(self, option: str) -> None:
        self._page.bring_to_front()
        self.part("option").filter(has_text=option).click()

    def decline(self) -> None:
        self._press("decline")

    def _press(self, name: str) -> None:
        self._page.bring_to_front()  # a tab behind another draws a frame a second, and a click waits for frames
        self.part(name).click()
