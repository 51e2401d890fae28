"""Who is let in: the server's own names and pages, and those that are listed."""

import pytest

from perdure.testing import ScriptedModel, say
from tests.support import Serve, Serving, agent

pytestmark = pytest.mark.anyio

HISTORY = "/agents/agent/room/get-messages"


async def status(server: Serving, **headers: str) -> int:
    return (await server.get(HISTORY, headers=headers)).status_code


async def close_code(server: Serving, host: str = "127.0.0.1", **options: object) -> int | None:
    """How a socket is refused; ``None`` when it is let in."""
    tab = await server.connect("/agents/agent/room", host, **options)
    try:
        await tab.opened()
    except AssertionError:
        code, reason = await tab.ended()
        assert reason
        return code
    return None


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", "file://"]
)
async def test_pages_from_elsewhere_are_refused(serve: Serve, origin: str) -> None:
    server = await serve(agent(ScriptedModel([])))
    assert await status(server, Origin=origin) == 403
    assert await close_code(server, origin=origin) == 4403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example"])
async def test_other_host_names_are_refused(serve: Serve, host: str) -> None:
    """A page whose name was made to point here has the right origin, but not the right host."""
    server = await serve(agent(ScriptedModel([])))
    assert await status(server, Host=host) == 403
    assert await close_code(server, host, origin=f"http://{host}:{server.port}") == 4403


async def test_a_request_without_a_host_is_refused(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    answer = await server.raw(f"GET {HISTORY} HTTP/1.0\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403")


async def test_the_servers_own_pages_and_clients_that_are_no_pages_are_let_in(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])))
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        own = f"http://{host}:{server.port}"
        assert await status(server, Host=f"{host}:{server.port}", Origin=own) == 200, host
        assert await close_code(server, host, origin=own) is None, host
    assert await status(server) == 200
    assert await close_code(server) is None


async def test_listed_hosts_and_origins_are_let_in_and_no_others(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])), hosts=["chat.example"], origins=["https://pages.example"])
    assert await status(server, Host="chat.example") == 200
    assert await status(server, Origin="https://pages.example") == 200
    assert await close_code(server, "chat.example") is None
    assert await close_code(server, origin="https://pages.example") is None
    assert await status(server, Origin="https://other.example") == 403
    assert await status(server, Host="pages.example") == 403


async def test_a_star_lets_everyone_in(serve: Serve) -> None:
    server = await serve(agent(ScriptedModel([])), hosts=["*"], origins=["*"])
    assert await close_code(server, "any.example", origin="https://evil.example") is None
    assert await status(server, Host="any.example", Origin="null") == 200


async def test_a_refused_request_wakes_no_agent(serve: Serve) -> None:
    def broken(self: object) -> None:
        raise AssertionError("the agent was made")

    server = await serve(agent(ScriptedModel([]), __init__=broken))
    assert await status(server, Origin="https://evil.example") == 403
    assert await close_code(server, origin="https://evil.example") == 4403


@pytest.mark.parametrize(
    "value", [b"http://[", b"http://[::1", b"\xe9" * 200, b"http://" + b"x" * 2000, b"", b"http://a:b:c"]
)
async def test_origins_and_hosts_that_make_no_sense_are_refused(serve: Serve, value: bytes) -> None:
    server = await serve(agent(ScriptedModel([say("Hello.")])))
    for host, origin in ((b"localhost", value), (value, b"http://localhost")):
        headers = b"Host: %s\r\nOrigin: %s\r\n" % (host, origin)
        http = await server.raw(b"GET %s HTTP/1.1\r\n%sConnection: close\r\n\r\n" % (HISTORY.encode(), headers))
        assert http.startswith((b"HTTP/1.1 403", b"HTTP/1.1 400")), http
        upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        path = b"GET /agents/agent/room HTTP/1.1\r\n"
        socket = await server.raw(path + headers + upgrade + key, until="\r\n\r\n....")
        frame = socket.partition(b"\r\n\r\n")[2]
        assert (frame[0], frame[2:4]) == (0x88, (4403).to_bytes(2, "big")), "accepted, then only a close frame"

    tab = await server.tab()
    await tab.ask("r1", "Hi")
    assert (await tab.done("r1"))["outcome"] == "completed"
