"""Headless Chromium, and the demo agent as a process of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chat_page import ChatPage
from tests.support.process import ROOT, ServerProcess

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-sandbox",
)
"""No connection but to the server, and usable as root in a container."""
TIME_ZONE = "Asia/Tokyo"
"""The browser's, and not the server's."""


def find_chromium() -> str:
    """Path of the browser; fails the test where there is none."""
    candidates = (os.environ.get("PERDURE_CHROMIUM", ""), *CHROMIUM_NAMES)
    for path in map(shutil.which, candidates):
        if path is not None:
            return path
    pytest.fail("No Chromium found. Install it (sudo apt-get install chromium) or set PERDURE_CHROMIUM.", pytrace=False)


@pytest.fixture(
    scope="module"
)  # not longer: while it lives its event loop is the thread's, and async tests need theirs
def browser() -> Iterator[Browser]:
    path = find_chromium()
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        yield running
        running.close()


@pytest.fixture
def target() -> str:
    """The app that is served."""
    return "examples.assistant:app"


@pytest.fixture
def server(tmp_path: Path, target: str) -> Iterator[ServerProcess]:
    if not (ROOT / "src/perdure/server/static/index.html").is_file():
        pytest.fail("The page is not built: run scripts/test or scripts/serve, which build it.", pytrace=False)
    running = ServerProcess(target, tmp_path / "data", env={"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""})
    running.start()
    yield running
    running.stop()


@pytest.fixture
def look() -> dict[str, Any]:
    """The browser's screen and preferences."""
    return {"viewport": {"width": 1000, "height": 760}}


@pytest.fixture
def open_tab(browser: Browser, server: ServerProcess, look: dict[str, Any]) -> Iterator[Callable[..., ChatPage]]:
    """Opens a tab on a conversation. Fails the test if a script on the page failed."""
    context = browser.new_context(reduced_motion="reduce", timezone_id=TIME_ZONE, **look)
    faults: list[str] = []
    context.on("weberror", lambda fault: faults.append(str(fault.error)))

    def open_one(name: str, agent: str = "") -> ChatPage:
        tab = ChatPage(context.new_page(), server.url)
        tab.open(name, agent)
        return tab

    yield open_one
    context.close()
    assert faults == []
