"""Makes pydantic-ai models from names, with the quick client where it fits, and explains what is missing.

Importing it imports ``pydantic_ai``; a provider's SDK is imported when the first model of it is made.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, cast, get_args

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, OpenAIChatCompatibleProvider, infer_model, known_model_names
from pydantic_ai.providers import Provider, infer_provider_class

from perdure.errors import ConfigurationError, MissingExtra
from perdure.models.pydantic_ai import PydanticAIModel

__all__ = ["Made", "compatible_model", "named_model"]

Made = tuple[PydanticAIModel, Callable[[], Awaitable[None]]]
"""A model, and what closes its connections."""

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
        provider = model.provider
        if quick and provider_name in _QUICK_PROVIDERS:
            model = _quickened(model)
    return PydanticAIModel(model, name=name), _closer(provider)


def compatible_model(name: str, base_url: str, api_key: str, *, quick: bool) -> Made:
    """The model ``name`` of a server that speaks OpenAI's chat completions.

    Raises:
        MissingExtra: the OpenAI SDK is not installed.
    """
    with _explained(f"{name} at {base_url}"):
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        owner = provider = OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key)
        if quick:
            from perdure.models.quick.client import QuickAsyncOpenAI

            client = QuickAsyncOpenAI.like(provider.client)
            provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)
        profile = OpenAIModelProfile(json_schema_transformer=None)
        model = OpenAIChatModel(name, provider=provider, profile=profile)
    return PydanticAIModel(model, name=f"openai-compatible:{name}"), _closer(owner)


def _quickened(model: Model[Any]) -> Model[Any]:
    """``model`` with the quick client in place of the SDK's, and tool schemas sent as they are."""
    if "pydantic_ai.models.openai" not in sys.modules:
        return model
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    from perdure.models.quick.client import QuickAsyncOpenAI

    if not isinstance(model, (OpenAIChatModel, OpenAIResponsesModel)) or type(model.client) is not AsyncOpenAI:
        return model
    make = OpenAIChatModel if isinstance(model, OpenAIChatModel) else OpenAIResponsesModel
    if type(model) is not make:
        return model
    provider = cast("Any", type(model.provider))(openai_client=QuickAsyncOpenAI.like(model.client))
    return make(model.model_name, provider=provider, profile=OpenAIModelProfile(json_schema_transformer=None))


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
