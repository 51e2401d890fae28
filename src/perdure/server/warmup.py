"""Does before the first turn what it would wait for: a provider's SDK and pydantic take a second to import."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable

import anyio.to_thread

from perdure.agent.base import Agent
from perdure.agent.think import Think
from perdure.errors import ConfigurationError
from perdure.models.registry import resolve

__all__ = ["warm_up"]

logger = logging.getLogger(__name__)


async def warm_up(agents: Iterable[type[Agent]]) -> None:
    """Import what these agents need, in a thread; says which of them have a model that cannot be used."""
    await anyio.to_thread.run_sync(_warm_up, list(agents), abandon_on_cancel=True)


def _warm_up(agents: list[type[Agent]]) -> None:
    for module in ("pydantic", "griffe"):
        importlib.import_module(module)
    for agent in agents:
        if issubclass(agent, Think) and isinstance(agent.model, str):
            try:
                resolve(agent.model)
            except ConfigurationError as error:
                logger.warning("%s cannot answer: %s", agent.__name__, error)
