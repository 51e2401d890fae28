"""What the tests share: a real server in the test's own event loop, and raw WebSocket tabs that talk to it."""

from tests.support.doing import Doing, do
from tests.support.serving import Serving, serving
from tests.support.tabs import Frame, Tab, chunks_of, user_message

__all__ = ["Doing", "Frame", "Serving", "Tab", "chunks_of", "do", "serving", "user_message"]
