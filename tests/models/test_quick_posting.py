"""How the quick model posts: tries again as the SDK does, keeps connections, gives up in time."""

from __future__ import annotations

import email.utils
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from perdure.errors import ModelRejected, ModelUnreachable
from perdure.models.contract import ChatModel
from perdure.models.providers import quickened
from perdure.models.quick.client import QuickAsyncOpenAI, talking_like
from perdure.models.registry import close_models, openai_compatible
from tests.models.provider_server import ProviderServer, Reply, completion, delta, refused, sse
from tests.models.test_pydantic_ai_model import asking, events_of

NOW = 1_800_000_000
OK: Callable[[], Reply] = lambda: completion("a")  # noqa: E731


class Waits:
    """Takes the place of the SDK's clock: waits are written down instead of waited for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def time(self) -> float:
        return NOW


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr("openai._base_client.anyio", made)
    monkeypatch.setattr("openai._base_client.time", made)
    return made


@pytest.fixture
async def model(server: ProviderServer) -> AsyncIterator[ChatModel]:
    yield openai_compatible("m", f"{server.url}/v1", stock=False)
    await close_models()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_passing_trouble_is_tried_again_with_growing_waits(
    server: ProviderServer, model: ChatModel, waits: Waits, status: int
) -> None:
    server.script(refused(status, {}), refused(status, {}), OK())
    assert await events_of(model)
    assert [dict(asked.headers)["x-stainless-retry-count"] for asked in server.asked] == ["0", "1", "2"]
    first, second = waits.seconds
    assert 0.375 <= first <= 0.5
    assert 0.75 <= second <= 1.0


@pytest.mark.parametrize(("tries", "status"), [(0, 429), (4, 503)])
async def test_an_app_says_how_often_a_request_is_tried_again(
    server: ProviderServer, model: ChatModel, waits: Waits, tries: int, status: int
) -> None:
    server.script(refused(status, {}))
    with pytest.raises(ModelRejected) as raised:
        await events_of(model, asking(settings={"max_retries": tries}))
    assert (raised.value.status, len(server.asked), len(waits.seconds)) == (status, tries + 1, tries)


@pytest.mark.parametrize(
    "reply", [Reply(end="reset"), Reply(b"x", headers={"content-type": "text/plain"}, end="reset")]
)
async def test_a_connection_that_breaks_after_the_answer_began_is_not_tried_again(
    server: ProviderServer, model: ChatModel, reply: Reply
) -> None:
    server.script(reply, OK())
    with pytest.raises(ModelUnreachable):
        await events_of(model)
    assert len(server.asked) == 1


async def test_a_connection_that_breaks_before_the_answer_is_tried_again(
    server: ProviderServer, model: ChatModel, waits: Waits
) -> None:
    server.script(Reply(status=0), OK())
    assert await events_of(model)
    assert (len(server.asked), len(waits.seconds)) == (2, 1)


async def test_a_server_that_is_not_there_is_tried_again(waits: Waits) -> None:
    with pytest.raises(ModelUnreachable, match="onnect"):
        await events_of(openai_compatible("m", "http://127.0.0.1:9/v1", stock=False))
    assert len(waits.seconds) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_final(server: ProviderServer, model: ChatModel, waits: Waits, status: int) -> None:
    server.script(refused(status, {}), OK())
    with pytest.raises(ModelRejected) as raised:
        await events_of(model)
    assert (raised.value.status, waits.seconds) == (status, [])


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after-ms": "1500"}, 1.5, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25, 0.25),
        ({"retry-after": email.utils.formatdate(NOW + 60, usegmt=True)}, 60, 60),
        ({"retry-after": "soon"}, 0.375, 0.5),
    ],
)
async def test_the_server_says_how_long_to_wait(
    server: ProviderServer, model: ChatModel, waits: Waits, headers: dict[str, str], low: float, high: float
) -> None:
    server.script(refused(429, {}, **headers), OK())
    assert await events_of(model)
    assert len(waits.seconds) == 1
    assert low <= waits.seconds[0] <= high


async def test_a_server_that_falls_silent_is_given_up(server: ProviderServer, model: ChatModel) -> None:
    server.script(Reply(sse(delta("a")), end="silence"))
    with pytest.raises(ModelUnreachable, match="timed out"):
        await events_of(model, asking(settings={"timeout": 0.05}))
    await server.client_left.wait()


@pytest.mark.parametrize("settings", [{}, {"request_timeout": 60}])
async def test_closing_the_generator_ends_the_request(
    server: ProviderServer, model: ChatModel, settings: dict[str, Any]
) -> None:
    server.script(Reply(sse(delta("a")), end="silence"))
    stream: Any = model.stream(asking(settings=settings))
    await anext(stream)
    await stream.aclose()
    await server.client_left.wait()


async def test_connections_are_used_again(server: ProviderServer, model: ChatModel) -> None:
    server.script(OK())
    for _ in range(3):
        await events_of(model)
    assert (len(server.asked), server.connections) == (3, 1)


async def test_a_client_that_talks_like_another_has_its_ways() -> None:
    whole = AsyncOpenAI(
        base_url="http://h/v1", api_key="k", organization="o", default_headers={"a": "b"}, max_retries=9
    )
    like = talking_like(whole, QuickAsyncOpenAI)
    assert (str(like.base_url), like.organization, like.max_retries) == ("http://h/v1/", "o", 9)
    assert like.default_headers["a"] == "b"
    assert type(like.with_options(max_retries=0)) is QuickAsyncOpenAI
    await whole.close()
    assert like.is_closed()


async def test_a_model_with_a_client_of_another_kind_is_left_as_it_is(server: ProviderServer) -> None:
    class Own(AsyncOpenAI):
        pass

    async with Own(base_url=f"{server.url}/v1", api_key="k") as client:
        provider = OpenAICompatibleProvider("x", openai_client=client)
        assert quickened(OpenAIChatModel("m", provider=provider), "m") is None
