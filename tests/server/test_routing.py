"""Which agent an address reaches, and what addresses that name none are answered."""

import pytest

from perdure import Think
from perdure.testing import ScriptedModel, say
from tests.requirements import requirement
from tests.support import Serve, agent

pytestmark = pytest.mark.anyio


def answering(*answers: str) -> type[Think]:
    return agent(ScriptedModel([say(answer) for answer in answers]))


@requirement("protocol:1")
async def test_a_socket_reaches_the_class_and_the_instance_that_its_path_names(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([]), name="MyAgent"), agent(ScriptedModel([]), name="Other"))
    tab = await server.tab("room-1", "my-agent")
    assert {"type": "cf_agent_identity", "name": "room-1", "agent": "my-agent"} in await tab.opened()


@requirement("protocol:2")
@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("MyAgent", "my-agent"),
        ("MY_AGENT", "my-agent"),
        ("HTTPAgent", "h-t-t-p-agent"),
        ("My_Agent", "my--agent"),
        ("GPT4Agent", "g-p-t4-agent"),
        ("agentX", "agent-x"),
    ],
)
async def test_a_class_is_reached_under_its_name_in_kebab_case(serve: Serve, name: str, path: str) -> None:
    server = await serve(agent(ScriptedModel([]), name=name))
    tab = await server.tab("room", path)
    assert {"type": "cf_agent_identity", "name": "room", "agent": path} in await tab.opened()


@requirement("protocol:3")
async def test_a_request_for_an_unknown_class_is_an_invalid_request(serve: Serve) -> None:
    server = await serve(answering())
    for path in ("/agents/nobody/room", "/agents/nobody/room/get-messages", "/agents/Agent/room/get-messages"):
        response = await server.get(path)
        assert (response.status_code, response.text) == (400, "Invalid request"), path


async def test_a_socket_to_an_unknown_class_is_accepted_and_closed_for_good(serve: Serve) -> None:
    server = await serve(answering())
    tab = await server.tab("room", "nobody")
    code, _ = await tab.ended()
    assert code == 4404
    assert tab.frames == []


@requirement("protocol:4")
async def test_a_path_that_names_no_instance_is_not_found(serve: Serve) -> None:
    server = await serve(answering())
    for path in ("/agents", "/agents/", "/agents/agent", "/agents/agent/", "/elsewhere", "/agent/room", "/agentsx/a/b"):
        assert (await server.get(path)).status_code == 404, path


@pytest.mark.parametrize("path", ["/agents", "/agents/agent", "/elsewhere", "/"])
async def test_a_socket_to_no_instance_is_accepted_and_closed_for_good(serve: Serve, path: str) -> None:
    server = await serve(answering())
    tab = await server.connect(path)
    code, _ = await tab.ended()
    assert code == 4404


@requirement("protocol:5")
@pytest.mark.parametrize("name", ["a%20b", "a%2Fb", "a%2fb", "%F0%9F%8C%8D", "..", "a..b", "%2e%2e", "%00", "A", "a"])
async def test_an_instance_name_is_taken_as_it_stands_in_the_url(serve: Serve, name: str) -> None:
    server = await serve(answering("Hello."))
    tab = await server.tab(name)
    assert {"type": "cf_agent_identity", "name": name, "agent": "agent"} in await tab.opened()

    await tab.ask("r1", "Hi")
    await tab.done("r1")

    answer = await server.raw(
        f"GET /agents/agent/{name}/get-messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Hello." in answer


async def test_a_name_that_is_not_percent_encoded_harms_nothing(serve: Serve) -> None:
    server = await serve(answering("Hello."))
    for path in ("/agents/agent/🌍/get-messages".encode(), b"/agents/agent/\xff\xfe/get-messages"):
        answer = await server.raw(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
        assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400")), answer

    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"


async def test_a_name_may_have_512_bytes_and_no_more(serve: Serve) -> None:
    server = await serve(answering("Hello."))
    longest = "n" * 512
    tab = await server.tab(longest)
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    assert len(await server.stored(longest)) == 2

    for name in ("n" * 513, "%F0%9F%8C%8D" * 43):
        assert (await server.get(f"/agents/agent/{name}/get-messages")).status_code == 400
        code, _ = await (await server.tab(name)).ended()
        assert code == 4400


@requirement("protocol:6")
async def test_two_names_share_nothing_and_a_name_always_finds_its_own(serve: Serve) -> None:
    server = await serve(answering("To one.", "To two."))
    names = ["one", "two"]
    for name in names:
        tab = await server.tab(name)
        await tab.ask(f"r-{name}", f"I am {name}")
        await tab.done(f"r-{name}")
        await tab.close()

    for name in names:
        texts = [message["parts"][-1]["text"] for message in await server.stored(name)]
        assert texts == [f"I am {name}", f"To {name}."]
        greeting = (await (await server.tab(name)).opened())[0]
        assert [message["parts"][-1]["text"] for message in greeting["messages"]] == texts


@requirement("protocol:6")
@pytest.mark.parametrize("others", [["A", "a"], ["a/../b", "b"], ["a%2fb", "a%2Fb", "a%2e", "a."]])
async def test_names_that_look_alike_are_different_instances(serve: Serve, others: list[str]) -> None:
    """``a/../b`` is the instance ``a`` with a tail: nobody normalises paths."""
    server = await serve(answering("Hello."))
    tab = await server.connect(f"/agents/agent/{others[0]}")
    await tab.opened()
    await tab.ask("r1", "Hi")
    await tab.done("r1")
    for name in others[1:]:
        greeting = (await (await server.tab(name)).opened())[0]
        assert greeting["messages"] == [], name


async def test_doubled_and_trailing_slashes_and_tails_reach_the_same_instance(serve: Serve) -> None:
    server = await serve(answering())
    for path in (
        "//agents//agent//room",
        "/agents/agent/room/",
        "/agents/agent/room/some/tail",
        "/agents/agent/room?a=1",
    ):
        tab = await server.connect(path)
        assert {"type": "cf_agent_identity", "name": "room", "agent": "agent"} in await tab.opened()
