"""From what an app writes as its model to something that answers, made once per process.

Owns the cache and the errors of a wrong or incomplete model name. Importing it imports no provider SDK and no
``pydantic_ai``: that happens when the first name is resolved.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from perdure.errors import ConfigurationError
from perdure.models.contract import ChatModel

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from perdure.models.providers import Made
    from perdure.models.pydantic_ai import PydanticAIModel

Closing = Callable[[], Awaitable[None]]

__all__ = ["close_models", "default_model", "openai_compatible", "resolve"]

_lock = threading.Lock()
_by_key: dict[tuple[str, ...], ChatModel] = {}
_closers: list[Closing] = []


def resolve(model: str | ChatModel | Model[Any]) -> ChatModel:
    """The model that ``model`` means.

    Args:
        model: ``"provider:name"`` (kept for the process; the first one of a provider takes about a second, most of it
            the import of its SDK), ``"demo"``, a pydantic-ai model, or a :class:`ChatModel`, which is returned as is.

    Raises:
        ConfigurationError: not a model, an unknown provider, or its API key is not set.
        MissingExtra: the provider's SDK is not installed.
    """
    if isinstance(model, ChatModel):
        return model
    if isinstance(model, str):
        return _kept((model,), lambda: _demo() if model == "demo" else _named(model))
    # A pydantic-ai model can only be here if someone has imported its module.
    models = sys.modules.get("pydantic_ai.models")
    if models is not None and isinstance(model, models.Model):
        from perdure.models.pydantic_ai import PydanticAIModel

        return PydanticAIModel(model)
    raise ConfigurationError(f'{model!r} is not a model. Write "provider:name", or pass a pydantic-ai model.')


def default_model() -> str:
    """The model of an app that names none: OpenAI's or Anthropic's where its API key is set, else ``"demo"``."""
    if os.environ.get("OPENAI_API_KEY"):
        return "openai:gpt-6.1-terra"
    if os.environ.get("ANTHROPIC_API_KEY"):
        return "anthropic:claude-sonnet-5-5"
    return "demo"


def openai_compatible(name: str, base_url: str, api_key: str = "none", *, stock: bool | None = None) -> ChatModel:
    """A model behind any server that speaks OpenAI's chat completions (vLLM, Ollama, a gateway, …).

    Args:
        name: the model's name as the server knows it.
        base_url: the server's address up to and including the version, ``http://127.0.0.1:8000/v1``.
        api_key: sent as the bearer token; most local servers take anything.
        stock: whether the OpenAI SDK reads the answers itself instead of our quicker decoder; from the environment
            variable ``PERDURE_STOCK_OPENAI`` unless given.

    Raises:
        MissingExtra: the ``openai`` extra is not installed.
    """
    from perdure.models.providers import compatible_model

    quick = not (_stock_wanted() if stock is None else stock)
    return _kept(
        ("openai-compatible", name, base_url, api_key, str(quick)),
        lambda: _closed_later(lambda: compatible_model(name, base_url, api_key, quick=quick)),
    )


async def close_models() -> None:
    """Close the connections of every model made here, and forget the models. A request that is still running fails.

    Whoever still has a model may go on with it: it opens new ones.
    """
    with _lock:
        closers = _closers.copy()
        _closers.clear()
        _by_key.clear()
    await asyncio.gather(*(close() for close in closers))


def _kept(key: tuple[str, ...], make: Callable[[], ChatModel]) -> ChatModel:
    with _lock:
        if key not in _by_key:
            _by_key[key] = make()
        return _by_key[key]


def _named(name: str) -> ChatModel:
    from perdure.models.providers import named_model

    quick = not _stock_wanted()
    return _closed_later(lambda: named_model(name, quick=quick))


def _closed_later(make: Callable[[], Made]) -> ChatModel:
    model, close = make()
    _closers.append(_closer(model, close, make))
    return model


def _closer(model: PydanticAIModel, close: Closing, make: Callable[[], Made]) -> Closing:
    """What closes a model so that it can be used again."""

    def reopen() -> Model[Any]:
        again, close_again = make()
        _closers.append(_closer(model, close_again, make))
        return again.model

    async def close_it() -> None:
        model.closed(reopen)
        await close()

    return close_it


def _demo() -> ChatModel:
    return importlib.import_module("perdure.models.demo").DemoModel()


def _stock_wanted() -> bool:
    return os.environ.get("PERDURE_STOCK_OPENAI", "") not in ("", "0")
