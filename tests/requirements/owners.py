"""Who owes a requirement: the issues by title, and which of them are done. Imports nothing of the project."""

from typing import Final

__all__ = [
    "BASE",
    "DEFERRED",
    "DONE",
    "DURABLE",
    "ISSUES",
    "LATER",
    "MCP",
    "OWNERS",
    "SESSIONS",
    "SKELETON",
    "TOOLS",
    "WORKSPACE",
]

SKELETON: Final = "Walking skeleton: a Think agent chats with the published React hook"
BASE: Final = "The whole base: protocol, engine surface, models, serving"
TOOLS: Final = "Client tools, approvals, continuation, message concurrency"
DURABLE: Final = "Durable turns: recovery, submissions, schedules"
WORKSPACE: Final = "Workspace and its tools"
SESSIONS: Final = "Sessions: context blocks, compaction, search; skills"
MCP: Final = "MCP: connect to servers, and be one"

LATER: Final = "later"
"""Code mode, browser, extensions, skill scripts: their issues are not written yet."""

DEFERRED: Final = "deferred"
"""Left out on purpose; the row says why."""

ISSUES: Final = (SKELETON, BASE, TOOLS, DURABLE, WORKSPACE, SESSIONS, MCP)
OWNERS: Final = (*ISSUES, LATER, DEFERRED)

DONE: Final[frozenset[str]] = frozenset({SKELETON, BASE, TOOLS})
"""Issues that are finished. Every row of theirs needs a test or a recorded divergence."""
