"""Where the published React hooks differ from the product documents, so that we follow the hooks."""

from typing import Final

from tests.requirements.owners import TOOLS
from tests.requirements.rows import R, Requirement, table

__all__ = ["ROWS"]

ROWS: Final[tuple[Requirement, ...]] = (
    *table(
        "product",
        "product, client tools document",
        R(
            "hook-option-tools",
            TOOLS,
            "`useAgentChat` takes the page's tools in the option `clientTools`.",
            divergence="Decision 1: the published hook has no `clientTools`; its option is `tools`, and what "
            "it sends is the `clientTools` field of the request body. Our pages and documents use `tools`.",
        ),
        R(
            "execute-runs-by-itself",
            TOOLS,
            "A client tool's `execute` runs in the browser as soon as the model calls it.",
            divergence="Decision 1: the published hook runs `execute` by itself only with "
            "`experimental_automaticToolResolution`; otherwise the page answers through `onToolCall` and "
            "`addToolOutput`. Both ways work.",
        ),
        R(
            "on-tool-call-approves",
            TOOLS,
            "`onToolCall` that returns `{approve: true}` approves a call without asking.",
            divergence="Decision 1: the published hook ignores what `onToolCall` returns, so this does nothing "
            "in the browser. The Python client offers auto-approval.",
        ),
    ),
)
