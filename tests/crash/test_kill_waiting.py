"""``kill -9`` while messages wait for a turn that only the last of them will get."""

from __future__ import annotations

import pytest

from perdure.protocol.messages import text_of as words_of
from perdure.testing import strict_provider_errors
from tests.crash.conftest import Start
from tests.crash.consistency import INTERRUPTED, check_consistent, offered, text_so_far
from tests.crash.process import Process
from tests.support import Tab, user_message

pytestmark = pytest.mark.anyio


async def ask_all(tab: Tab, *orders: str) -> list[dict]:
    """Ask one after the other, each time with all questions so far."""
    questions = [user_message(order, f"u-{number}") for number, order in enumerate(orders)]
    for number in range(len(orders)):
        await tab.ask(f"r{number}", *questions[: number + 1])
    return questions


async def goes_on(server: Process, agent: str, asked) -> list[str]:
    """The next question is answered; gives what the model was shown of the conversation's questions."""
    tab = await server.tab(agent=agent)
    await tab.ask("r-next", *(await server.stored(agent=agent)), user_message("say 2", "u-next"))
    assert (await tab.done("r-next"))["outcome"] == "completed"
    request = asked()[-1]
    assert strict_provider_errors(request) == []
    return [message["id"] for message in request.messages if message["role"] == "user"]


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("latest", ["u-0", "u-3", "u-next"]),
        ("quiet", ["u-0", "u-3", "u-next"]),
        ("merge", ["u-0", "u-1", "u-2", "u-3", "u-next"]),
    ],
)
async def test_killed_while_messages_wait_the_model_is_shown_the_same_of_them_as_without(
    start: Start, asked, agent: str, shown: list[str]
) -> None:
    server = await start()
    tab, other = await server.tab(agent=agent), await server.tab(agent=agent)
    questions = await ask_all(tab, "hang 100", "say 1", "say 2", "say 3")
    await other.seen(lambda frame: len(frame.get("messages", [])) == 4)
    await tab.delta("r0", "99 ")
    await server.stored(agent=agent)
    streamed = text_so_far(tab, "r0")
    await server.kill()

    server = await start()
    messages = await server.stored(agent=agent)
    check_consistent(messages, questions)
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user", "user"]
    assert streamed.startswith(words_of(messages[1]))
    late = await server.tab(agent=agent)
    failure = await offered(late)
    assert (failure["id"], failure["body"]) == ("r3", INTERRUPTED), "those that had lost their turn did not fail"
    assert await goes_on(server, agent, asked) == shown


async def test_killed_after_the_last_one_was_stopped_the_others_are_not_said_to_have_failed(
    start: Start, asked
) -> None:
    server = await start()
    tab, other = await server.tab(agent="latest"), await server.tab(agent="latest")
    await ask_all(tab, "hang 100", "say 1", "say 2")
    await tab.cancel("r2")
    await other.done("r2")
    await tab.delta("r0", "99 ")
    await server.kill()

    server = await start()
    late = await server.tab(agent="latest")
    failure = await offered(late)
    assert (failure["id"], failure["body"]) == ("r0", INTERRUPTED)
    await server.kill()

    server = await start()
    late = await server.tab(agent="latest")
    assert (await offered(late))["id"] == "r0", "so it is after one more restart"
    assert await goes_on(server, "latest", asked) == ["u-0", "u-2", "u-next"]


async def test_killed_in_the_quiet_the_message_is_kept(start: Start, asked) -> None:
    server = await start()
    tab = await server.tab(agent="quiet")
    questions = await ask_all(tab, "hang 3", "say 1")
    await tab.delta("r0", "2 ")
    await tab.cancel("r0")
    await tab.done("r0")
    assert (await (await server.tab(agent="quiet")).probe("p"))["type"] == "cf_agent_stream_pending"
    await server.kill()

    server = await start()
    messages = await server.stored(agent="quiet")
    check_consistent(messages, questions)
    assert (await offered(await server.tab(agent="quiet")))["id"] == "r1"
    assert await goes_on(server, "quiet", asked) == ["u-0", "u-1", "u-next"]
