"""What the tests share: a real server in the test's own event loop, and raw WebSocket tabs that talk to it."""

from tests.support.agents import agent
from tests.support.doing import Doing, do
from tests.support.engines import Doubles
from tests.support.fixtures import ErrorLog, Serve
from tests.support.pages import Page, approval, offer, tool_failure, tool_result
from tests.support.serving import Serving, serving, serving_app
from tests.support.tabs import Frame, Tab, chat_request, chunks_of, text_of, user_message

__all__ = [
    "Doing",
    "Doubles",
    "ErrorLog",
    "Frame",
    "Page",
    "Serve",
    "Serving",
    "Tab",
    "agent",
    "approval",
    "chat_request",
    "chunks_of",
    "do",
    "offer",
    "serving",
    "serving_app",
    "text_of",
    "tool_failure",
    "tool_result",
    "user_message",
]
