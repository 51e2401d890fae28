"""Names of classes and instances, and the paths made of them."""

import pytest

from perdure.errors import BadRequest
from perdure.protocol.names import MAX_NAME_BYTES, Address, Route, kebab, parse_path
from tests.requirements import requirement


@requirement("protocol:2")
@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("MyAgent", "my-agent"),
        ("myAgent", "my-agent"),
        ("my-agent", "my-agent"),
        ("MY_AGENT", "my-agent"),
        ("HTTPAgent", "h-t-t-p-agent"),
        ("AIChatAgent", "a-i-chat-agent"),
        ("GPT4Agent", "g-p-t4-agent"),
        ("My_Agent", "my--agent"),
        ("my_agent_", "my-agent"),
        ("Foo__", "foo-"),
        ("agentX", "agent-x"),
        ("A", "a"),
        ("AB", "ab"),
        ("A_B", "a-b"),
        ("A2B3", "a2b3"),
        ("V2", "v2"),
        ("Chat2", "chat2"),
        ("MyAgentV2", "my-agent-v2"),
        ("MyAgent_", "my-agent"),
        ("__Foo", "---foo"),
        ("-Foo", "-foo"),
        ("123", "123"),
    ],
)
def test_a_class_name_becomes_the_segment_that_the_clients_make_of_it(name: str, segment: str) -> None:
    assert kebab(name) == segment


@pytest.mark.parametrize(("name", "segment"), [("ÄgyptenAgent", "Ägypten-agent"), ("ÄB", "äb"), ("", ""), ("_", "")])
def test_only_ascii_capitals_are_split(name: str, segment: str) -> None:
    assert kebab(name) == segment


@pytest.mark.parametrize(
    ("path", "kind", "name", "tail"),
    [
        ("/agents/my-agent/room-1", "my-agent", "room-1", ()),
        ("/agents/my-agent/room-1/", "my-agent", "room-1", ()),
        ("//agents///my-agent//room-1//", "my-agent", "room-1", ()),
        ("agents/my-agent/room-1", "my-agent", "room-1", ()),
        ("/agents/my-agent/room-1/get-messages", "my-agent", "room-1", ("get-messages",)),
        ("/agents/a/b//c/d/", "a", "b", ("c", "d")),
        ("/agents/agents/agents", "agents", "agents", ()),
    ],
)
def test_empty_segments_of_a_path_mean_nothing(path: str, kind: str, name: str, tail: tuple[str, ...]) -> None:
    assert parse_path(path) == Route(Address(kind, name), tail)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/agents",
        "/agents/",
        "/agents/x",
        "/agents/x//",
        "/other/x/y",
        "/agentsx/a/b",
        "/Agents/a/b",
        "/x/agents/a/b",
    ],
)
def test_a_path_without_prefix_class_and_name_names_no_agent(path: str) -> None:
    assert parse_path(path) is None


@pytest.mark.parametrize("name", ["alice%20b", "a%2Fb", "%", "%zz", "Room-1", "caf%C3%A9", "..", "sub"])
def test_a_root_name_is_taken_as_it_stands_in_the_path(name: str) -> None:
    route = parse_path(f"/agents/my-agent/{name}")
    assert route is not None
    assert route.address.name == name


def test_names_differ_by_case() -> None:
    assert parse_path("/agents/a/Room") != parse_path("/agents/a/room")


@pytest.mark.parametrize("prefix", ["api/v1/agents", "/api/v1/agents/", "api//v1/agents"])
def test_a_prefix_may_have_several_segments(prefix: str) -> None:
    assert parse_path("/api/v1/agents/a/b/c", prefix) == Route(Address("a", "b"), ("c",))
    assert parse_path("/api/v1/a/b", prefix) is None
    assert parse_path("/api/v1/agents/a", prefix) is None


def test_the_longest_name_is_measured_in_bytes() -> None:
    longest = "n" * MAX_NAME_BYTES
    assert parse_path(f"/agents/a/{longest}") == Route(Address("a", longest), ())
    assert parse_path(f"/agents/a/{'é' * (MAX_NAME_BYTES // 2)}") is not None
    for name in (f"{longest}n", "é" * (MAX_NAME_BYTES // 2 + 1)):
        with pytest.raises(BadRequest, match="longer than 512 bytes"):
            parse_path(f"/agents/a/{name}")


def test_the_key_of_an_agent_is_its_canonical_path() -> None:
    assert Address("my-agent", "alice%20b").key == "my-agent/alice%20b"
