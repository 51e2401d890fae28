"""Tools that the caller of ``chat()`` runs: for one turn, and stored nowhere (reference: engine §4.2).

The caller is live code that dies with the process, so a call that the end of the process cut off is an orphan like any
other, and no person is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import anyio

from perdure.agent.stopping import is_stopping
from perdure.errors import BadRequest, ConfigurationError
from perdure.protocol import codec
from perdure.protocol.client_tools import parse_client_tools
from perdure.tools import Tool, ToolContext, ToolSet, page_tools
from perdure.tools.running import run_function

__all__ = ["CallerTools", "ClientTool", "ClientToolCall", "Executor"]

logger = logging.getLogger(__name__)

ClientTool = Tool | Mapping[str, Any]
"""A client tool, or what a page would send: ``{"name": …, "description": …, "parameters": JSON Schema}``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClientToolCall:
    """What ``on_client_tool_call`` is given."""

    tool_name: str
    input: dict[str, Any]
    """The arguments, which fit the schema."""
    tool_call_id: str


Executor = Callable[[ClientToolCall], Any]
Spawn = Callable[[Coroutine[Any, Any, None], str], None]


@dataclass(frozen=True, slots=True)
class CallerTools:
    """The client tools of one ``chat()``."""

    tools: ToolSet | None = None
    """``None`` when the caller gave none: the page's are offered then."""
    unanswered: frozenset[str] = field(default_factory=frozenset[str])
    """Those whose calls nobody runs."""

    @classmethod
    def of(cls, given: Sequence[ClientTool], executor: Executor | None, spawn: Spawn) -> CallerTools:
        """What was given to ``chat()``. ``spawn`` runs the executor as a task of the agent.

        Raises:
            ConfigurationError: something of it cannot be used.
        """
        check: Any = executor
        if check is not None and not callable(check):
            raise ConfigurationError(f"on_client_tool_call is {check!r:.100}; give a function of a ClientToolCall.")
        if not given:
            return cls()
        tools = _tools(given)
        if executor is None:
            # Nobody is asked whether something may be done that nobody does.
            return cls(ToolSet({name: tool.ungated() for name, tool in tools.items()}), frozenset(tools))
        return cls(ToolSet({name: _run_by(executor, tool, spawn) for name, tool in tools.items()}))


def _tools(given: Any) -> dict[str, Tool]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ConfigurationError(f"client_tools is {given!r:.100}; give a list of tools.")
    tools: dict[str, Tool] = {}
    for entry in cast("Iterable[Any]", given):
        tool = entry if isinstance(entry, Tool) else _declared(entry)
        if tool.execute is not None:
            raise ConfigurationError(
                f"{tool.name} runs on the server: give client_tools made with client_tool(), or dicts with name, "
                "description and parameters."
            )
        _ = tool.spec  # what cannot be used is said here, to the caller, and does not fail the turn
        if tool.name in tools:
            logger.warning("chat() was given two client tools named %s: the later one counts", tool.name)
        tools[tool.name] = tool
    return tools


def _declared(entry: Any) -> Tool:
    try:
        found = list(page_tools(parse_client_tools(codec.encode_text([entry]))).values())
        problem = "" if found else "it has no name"
    except (BadRequest, TypeError) as error:
        found, problem = [], str(error)
    if not found:
        raise ConfigurationError(
            f"{entry!r:.200} is no client tool ({problem}): give client_tool(…), or a dict with name, description and "
            "parameters (JSON Schema)."
        )
    return found[0]


def _run_by(executor: Executor, tool: Tool, spawn: Spawn) -> Tool:
    """The tool with the caller's function as its own."""

    async def execute(input: Any, context: ToolContext) -> Any:
        arguments = cast("dict[str, Any]", codec.decode(codec.encode_text(input)))
        call = ClientToolCall(tool_name=tool.name, input=arguments, tool_call_id=context.tool_call_id)
        run = _Run()
        spawn(run.carry_out(partial(executor, call), tool.name), f"client tool {tool.name}")
        return await run.result()

    return tool.run_by(execute)


class _Run:
    """The caller's code as it runs: apart from the turn, which does not stop it, and ended with the agent."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._dropped = False
        self._value: Any = None
        self._error: BaseException | None = None

    async def carry_out(self, work: partial[Any], name: str) -> None:
        """Run it. The agent's task."""
        try:
            self._value = await run_function(work, name, None)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            self._dropped = isinstance(error, asyncio.CancelledError) and is_stopping()
            self._error = error
        finally:
            self._over.set()

    async def result(self) -> Any:
        """What came of it. A turn that is stopped ends when that is known.

        Raises:
            Exception: what the caller's code raises.
        """
        with anyio.CancelScope(shield=True):
            await self._over.wait()
        if self._dropped:
            await anyio.sleep_forever()  # the turn is dropped with the agent, within this moment
        if self._error is not None:
            raise self._error
        return self._value
