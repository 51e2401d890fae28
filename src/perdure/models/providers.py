"""Makes models from names, the quick one where it fits, and explains what is missing.

Importing it imports ``pydantic_ai``; a provider's SDK is imported when the first model of it is made.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, OpenAIChatCompatibleProvider, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from perdure.errors import ConfigurationError, MissingExtra
from perdure.models.pydantic_ai import PydanticAIModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Made", "compatible_model", "named_model", "quickened"]

Made = tuple[PydanticAIModel, Callable[[], Awaitable[None]]]
"""A model, and what closes its connections."""

M = TypeVar("M", bound=Model[Any])

_OUR_EXTRAS = frozenset({"anthropic", "google", "openai"})
_INSTALL_HINT = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")
_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")

_QUICK_PROVIDERS = frozenset({
    "alibaba", "deepseek", "fireworks", "heroku", "litellm", "moonshotai", "nebius", "openai", "openai-chat",
    "openai-responses", "ovhcloud", "sambanova", "together", "vercel", "vllm",
})  # fmt: skip
"""Providers that talk through a plain ``AsyncOpenAI`` and take another in its place. The rest (Azure, OpenRouter, …)
have clients or models of their own that look deeper into the answers."""


def named_model(name: str, *, quick: bool) -> Made:
    """The model of ``"provider:name"``.

    Raises:
        ConfigurationError: the name has no provider, or an unknown one, or a setting such as the API key is missing.
        MissingExtra: the provider's SDK is not installed.
    """
    provider_name, colon, _ = name.partition(":")
    if not colon:
        raise ConfigurationError(f'{name!r} names no provider: write "provider:name".{_suggestion(name)}')
    with _explained(name):
        try:
            infer_provider_class(provider_name)
        except ValueError:
            raise ConfigurationError(f"Unknown provider {provider_name!r} in {name!r}.{_suggestion(name)}") from None
        model = infer_model(name)
        made = quickened(model, name) if quick and provider_name in _QUICK_PROVIDERS else None
    return made or PydanticAIModel(model, name=name), _closer(model.provider)


def compatible_model(name: str, base_url: str, api_key: str, *, quick: bool) -> Made:
    """The model ``name`` of a server that speaks OpenAI's chat completions.

    Raises:
        MissingExtra: the OpenAI SDK is not installed.
    """
    with _explained(f"{name} at {base_url}"):
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        provider = OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key)
        profile = OpenAIModelProfile(json_schema_transformer=None)
        model = OpenAIChatModel(name, provider=provider, profile=profile)
        log_name = f"openai-compatible:{name}"
        if not quick:
            return PydanticAIModel(model, name=log_name), _closer(provider)
        from perdure.models.quick.client import talking_like
        from perdure.models.quick.model import QuickChatModel
        from perdure.models.quick.recording import Recorder

        recorder = OpenAICompatibleProvider("openai-compatible", openai_client=talking_like(model.client, Recorder))
        recording = OpenAIChatModel(name, provider=recorder, profile=profile)
        return QuickChatModel(model, recording, name=log_name), _closer(provider)


def quickened(model: Model[Any], name: str) -> PydanticAIModel | None:
    """The quick model for ``model``, with tool schemas sent as they are; None if there is none for its kind."""
    if "pydantic_ai.models.openai" not in sys.modules:
        return None
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    from perdure.models.quick.client import QuickAsyncOpenAI, talking_like
    from perdure.models.quick.model import QuickChatModel
    from perdure.models.quick.recording import Recorder

    if type(model) is OpenAIChatModel and QuickChatModel.fits(model):
        stock, recording = _with_client(model, model.client), _with_client(model, talking_like(model.client, Recorder))
        return QuickChatModel(stock, recording, name=name)
    if type(model) is OpenAIResponsesModel and type(model.client) is AsyncOpenAI:
        return PydanticAIModel(_with_client(model, talking_like(model.client, QuickAsyncOpenAI)), name=name)
    return None


def _with_client(model: M, client: AsyncOpenAI) -> M:
    """``model`` with another client, and tool schemas sent as they are."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    provider = cast("Any", type(model.provider))(openai_client=client)
    profile = OpenAIModelProfile(json_schema_transformer=None)
    return cast("Any", type(model))(model.model_name, provider=provider, profile=profile)


def _closer(provider: Provider[Any] | None) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        # Leaving a provider closes the HTTP client that it made.
        if provider is not None:
            async with provider:
                pass

    return close


@contextmanager
def _explained(name: str) -> Generator[None]:
    try:
        yield
    except ImportError as error:
        hint = _INSTALL_HINT.search(str(error))
        if hint is None:
            raise
        package = "perdure" if hint[1] in _OUR_EXTRAS else "pydantic-ai-slim"
        raise MissingExtra(f'The model "{name}"', f'pip install "{package}[{hint[1]}]"') from error
    except UserError as error:
        variables = list(dict.fromkeys(_VARIABLE.findall(str(error))))
        if not variables:
            raise ConfigurationError(f'The model "{name}": {error}') from error
        raise ConfigurationError(
            f'The model "{name}" needs the environment variable {" or ".join(variables)}. '
            'The model "demo" needs nothing.'
        ) from error


def _suggestion(name: str) -> str:
    """The known models or providers that are spelled like ``name``."""
    known = known_model_names()
    providers = {model.partition(":")[0] for model in known} | set(get_args(OpenAIChatCompatibleProvider.__value__))
    provider, colon, model = name.partition(":")
    if colon:
        close = [f"{match}:{model}" for match in get_close_matches(provider, sorted(providers), n=3)]
    else:
        ours_last = sorted(known, key=lambda full: full.partition(":")[0] in _OUR_EXTRAS)
        by_model = {full.partition(":")[2]: full for full in ours_last}
        close = [by_model[match] for match in get_close_matches(name, by_model, n=3)]
    return f" Did you mean {' or '.join(repr(one) for one in close)}?" if close else ""
