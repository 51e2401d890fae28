"""The bus of a single process."""

import pytest

from perdure.agent.connection import ConnectionRequest
from perdure.host.bus import LocalBus
from perdure.protocol.names import Address
from tests.host.sinks import RecordingSink

pytestmark = pytest.mark.anyio

REQUEST = ConnectionRequest("/agents/agent/room", {"_pk": "x"}, {})
ROOM, HALL = Address("agent", "room"), Address("agent", "hall")


class RecordingAgents:
    """Keeps what the bus delivers."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None:
        assert request is REQUEST
        self.events.append(("connect", address, peer))

    def receive(self, address: Address, peer: int, message: str | bytes) -> None:
        self.events.append(("receive", address, peer, message))

    def disconnect(self, address: Address, peer: int) -> None:
        self.events.append(("disconnect", address, peer))

    async def call(self, address: Address, method: str) -> str:
        return f"{address.key} {method}"


def bus_and_agents() -> tuple[LocalBus, RecordingAgents]:
    bus, agents = LocalBus(), RecordingAgents()
    bus.serve(agents)
    return bus, agents


async def test_events_reach_the_agent_of_their_connection_in_order() -> None:
    bus, agents = bus_and_agents()
    one = bus.attach(ROOM, RecordingSink(), REQUEST)
    other = bus.attach(HALL, RecordingSink(), REQUEST)
    bus.post(other, "a")
    bus.post(one, b"b")
    bus.detach(one)
    assert agents.events == [
        ("connect", ROOM, one),
        ("connect", HALL, other),
        ("receive", HALL, other, "a"),
        ("receive", ROOM, one, b"b"),
        ("disconnect", ROOM, one),
    ]


async def test_no_two_connections_ever_have_the_same_id() -> None:
    bus, _ = bus_and_agents()
    peers: list[int] = []
    for _ in range(3):
        peers.append(bus.attach(ROOM, RecordingSink(), REQUEST))
        bus.detach(peers[-1])
    assert len(set(peers)) == 3


async def test_a_frame_reaches_those_it_is_for_and_passes_over_those_who_are_gone() -> None:
    bus, _ = bus_and_agents()
    sinks = [RecordingSink() for _ in range(3)]
    first, second, third = (bus.attach(ROOM, sink, REQUEST) for sink in sinks)
    bus.detach(second)
    bus.emit((first, second, 99), '{"type":"a"}')
    bus.emit((third, first), '{"type":"b"}')
    assert [sink.types for sink in sinks] == [["a", "b"], [], ["b"]]


async def test_hanging_up_closes_those_who_are_there() -> None:
    bus, agents = bus_and_agents()
    sinks = [RecordingSink() for _ in range(3)]
    first, second, _ = (bus.attach(ROOM, sink, REQUEST) for sink in sinks)
    bus.detach(second)
    bus.hang_up((first, second, 99), 1011, "gone")
    assert [sink.closed for sink in sinks] == [(1011, "gone"), None, None]
    assert agents.events[-1] == ("disconnect", ROOM, second), "the connection itself says when it has gone"


async def test_a_sink_is_attached_before_its_agent_hears_of_it() -> None:
    bus = LocalBus()
    sink = RecordingSink()

    class Greeting(RecordingAgents):
        def connect(self, address: Address, peer: int, request: ConnectionRequest) -> None:
            bus.emit((peer,), '{"type":"hello"}')

    bus.serve(Greeting())
    bus.attach(ROOM, sink, REQUEST)
    assert sink.types == ["hello"]


async def test_a_question_reaches_the_agent() -> None:
    bus, _ = bus_and_agents()
    assert await bus.call(HALL, "get-messages") == "agent/hall get-messages"


async def test_a_bus_that_nobody_serves_says_so() -> None:
    with pytest.raises(AssertionError, match="nobody serves this bus"):
        LocalBus().attach(ROOM, RecordingSink(), REQUEST)
