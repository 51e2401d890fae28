"""Names to models, and what is said when something is missing."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel as ProviderTestModel

from perdure.errors import ConfigurationError, MissingExtra
from perdure.models.contract import ChatModel
from perdure.models.pydantic_ai import PydanticAIModel
from perdure.models.quick.client import QuickAsyncOpenAI
from perdure.models.quick.model import QuickChatModel
from perdure.models.registry import close_models, default_model, openai_compatible, resolve
from tests.models.provider_server import ProviderServer, completion
from tests.models.test_pydantic_ai_model import events_of

KEYS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "PERDURE_STOCK_OPENAI")


@pytest.fixture(autouse=True)
async def bare(monkeypatch: pytest.MonkeyPatch) -> Any:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    await close_models()
    yield
    await close_models()


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_importing_the_registry_imports_no_provider() -> None:
    heavy = "pydantic_ai", "openai", "anthropic", "httpx2"
    code = f"import sys, perdure.models.registry; print([m for m in {heavy} if m in sys.modules])"
    assert run(code) == "[]"


async def test_a_named_anthropic_model_does_not_import_openai() -> None:
    code = (
        "import sys, os; os.environ['ANTHROPIC_API_KEY'] = 'k'\n"
        "from perdure.models.registry import resolve\n"
        "print(resolve('anthropic:claude-sonnet-5-5').name, 'openai' in sys.modules)"
    )
    assert run(code) == "anthropic:claude-sonnet-5-5 False"


async def test_a_chat_model_is_itself() -> None:
    class Own(ChatModel):
        def stream(self, request: Any) -> Any: ...

    own = Own()
    assert resolve(own) is own


async def test_a_pydantic_ai_model_is_wrapped() -> None:
    model: Any = ProviderTestModel()
    wrapped: Any = resolve(model)
    assert wrapped.model is model
    assert wrapped.name == "test:test"


@pytest.mark.parametrize("value", [None, 5, object()])
async def test_anything_else_is_not_a_model(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a model"):
        resolve(value)


async def test_a_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert resolve("openai:gpt-5.2") is resolve("openai:gpt-5.2")
    assert resolve("openai:gpt-5.2") is not resolve("openai:gpt-5-mini")


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [
        ("openai:gpt-5.2", "OPENAI_API_KEY", OpenAIResponsesModel),
        ("openai-chat:gpt-5.2", "OPENAI_API_KEY", OpenAIChatModel),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY", OpenAIChatModel),
        ("together:x", "TOGETHER_API_KEY", OpenAIChatModel),
        ("fireworks:x", "FIREWORKS_API_KEY", OpenAIChatModel),
        ("moonshotai:kimi", "MOONSHOTAI_API_KEY", OpenAIChatModel),
        ("alibaba:qwen", "ALIBABA_API_KEY", OpenAIChatModel),
        ("sambanova:x", "SAMBANOVA_API_KEY", OpenAIChatModel),
        ("nebius:x", "NEBIUS_API_KEY", OpenAIChatModel),
        ("ovhcloud:x", "OVHCLOUD_API_KEY", OpenAIChatModel),
        ("heroku:x", "HEROKU_INFERENCE_KEY", OpenAIChatModel),
        ("vercel:openai/x", "VERCEL_AI_GATEWAY_API_KEY", OpenAIChatModel),
    ],
)
async def test_openai_and_those_like_it_are_quick_unless_told(
    monkeypatch: pytest.MonkeyPatch, name: str, key: str, kind: type
) -> None:
    monkeypatch.setenv(key, "secret")
    made: Any = resolve(name)
    assert type(made.model) is kind
    assert type(made) is QuickChatModel if kind is OpenAIChatModel else type(made.model.client) is QuickAsyncOpenAI
    monkeypatch.setenv("PERDURE_STOCK_OPENAI", "1")
    await close_models()
    stock: Any = resolve(name)
    assert type(stock) is PydanticAIModel
    assert type(stock.model.client) is AsyncOpenAI
    assert stock.model.system == made.model.system
    assert (str(stock.model.client.base_url), stock.model.client.api_key) == (str(made.model.client.base_url), "secret")
    assert stock.model.client.timeout == made.model.client.timeout


async def test_the_base_url_of_the_environment_is_used(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v7")
    server.script(completion("hi"))
    await events_of(resolve("openai-chat:any"))
    assert server.asked[0].target == "/v7/chat/completions"


async def test_a_compatible_server_is_asked_with_its_key(server: ProviderServer) -> None:
    server.script(completion("hi"))
    model = openai_compatible("m", f"{server.url}/v1", "secret")
    assert model is openai_compatible("m", f"{server.url}/v1", "secret")
    await events_of(model)
    await events_of(openai_compatible("m", f"{server.url}/v1"))
    assert [dict(asked.headers)["authorization"] for asked in server.asked] == ["Bearer secret", "Bearer none"]
    assert server.asked[0].json["model"] == "m"


@pytest.mark.parametrize("stock", [False, True], ids=["quick", "stock"])
async def test_closing_the_models_closes_their_connections(server: ProviderServer, stock: bool) -> None:
    server.script(completion("hi"))
    model: Any = openai_compatible("m", f"{server.url}/v1", stock=stock)
    await events_of(model)
    client = model.model.client
    await close_models()
    assert client.is_closed()
    again = openai_compatible("m", f"{server.url}/v1", stock=stock)
    assert again is not model
    assert (await events_of(again))[-1].reason == "stop"


@pytest.mark.parametrize("stock", [False, True], ids=["quick", "stock"])
async def test_a_model_that_was_closed_can_be_used_again_and_is_closed_again(
    server: ProviderServer, stock: bool
) -> None:
    """A class may hold one, and its app be started again."""
    server.script(completion("hi"))
    model: Any = openai_compatible("m", f"{server.url}/v1", stock=stock)
    for _ in range(3):
        for _ in range(2):
            assert (await events_of(model))[-1].reason == "stop"
        client = model.model.client
        assert not client.is_closed()
        await close_models()
        assert client.is_closed()


async def test_a_named_model_that_was_closed_can_be_used_again(
    server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    server.script(completion("hi"))
    model = resolve("openai-chat:any")
    await events_of(model)
    await close_models()
    assert (await events_of(model))[-1].reason == "stop"


async def test_the_default_is_what_there_is_a_key_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_model() == "demo"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert default_model() == "anthropic:claude-sonnet-5-5"
    assert resolve(default_model()).name == default_model()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert default_model() == "openai:gpt-6.1-terra"
    assert resolve(default_model()).name == default_model()


async def test_demo_is_the_built_in_model(monkeypatch: pytest.MonkeyPatch) -> None:
    class DemoModel(ChatModel):
        name = "demo"

        def stream(self, request: Any) -> Any: ...

    module: Any = ModuleType("perdure.models.demo")
    module.DemoModel = DemoModel
    monkeypatch.setitem(sys.modules, "perdure.models.demo", module)
    assert resolve("demo").name == "demo"


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai:gpt-5.2", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-5-5", "ANTHROPIC_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
    ],
)
async def test_a_missing_key_is_named(name: str, variable: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve(name)
    assert str(raised.value) == (
        f'The model "{name}" needs the environment variable {variable}. The model "demo" needs nothing.'
    )


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("antropic:claude-x", "Did you mean 'anthropic:claude-x'"),
        ("open-ai:gpt-5.2", "'openai:gpt-5.2'"),
        ("claude-sonnet-55", "'anthropic:claude-sonnet-5-5'"),
        ("zzzzzz:x", "Unknown provider 'zzzzzz'"),
        ("zzzzzz", 'write "provider:name"'),
        ("", 'write "provider:name"'),
    ],
)
async def test_a_wrong_name_gets_close_ones(name: str, suggestion: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve(name)
    assert suggestion in str(raised.value)
    assert not isinstance(raised.value, MissingExtra)


@pytest.mark.parametrize(
    ("name", "package", "command"),
    [
        ("openai:gpt-5.2", "openai", 'pip install "perdure[openai]"'),
        ("anthropic:claude-sonnet-5-5", "anthropic", 'pip install "perdure[anthropic]"'),
        ("google:gemini-x", "google.genai", 'pip install "perdure[google]"'),
        ("mistral:x", "mistralai", 'pip install "pydantic-ai-slim[mistral]"'),
    ],
)
async def test_a_missing_sdk_is_one_command_away(name: str, package: str, command: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from perdure.errors import MissingExtra\n"
        "from perdure.models.registry import resolve\n"
        f"try: resolve({name!r})\n"
        "except MissingExtra as error: print(error)"
    )
    assert run(code) == f'The model "{name}" needs a part that is not installed. Install it with: {command}'
