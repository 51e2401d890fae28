"""Paths and keys of sub-agents."""

import pytest

from perdure.errors import BadRequest
from perdure.protocol.names import MAX_DEPTH, MAX_NAME_BYTES, Address, Route, parse_path
from tests.requirements.marker import requirement

KINDS = {"inbox", "chat"}
ACME = Address("tenant", "acme")
ALICE = Address("inbox", "alice", ACME)


@pytest.mark.parametrize(
    ("path", "address", "tail"),
    [
        ("/sub/inbox/alice", ALICE, ()),
        ("/sub/inbox/alice/", ALICE, ()),
        ("//sub//inbox//alice", ALICE, ()),
        ("/sub/inbox/alice/get-messages", ALICE, ("get-messages",)),
        ("/sub/inbox/alice/sub/chat/room-7", Address("chat", "room-7", ALICE), ()),
        ("/sub/inbox/alice/sub/chat/room-7/a/b", Address("chat", "room-7", ALICE), ("a", "b")),
        ("/files/sub/inbox/alice", ALICE, ()),
        ("/sub/inbox/sub", Address("inbox", "sub", ACME), ()),
        ("/sub/inbox/sub/sub/chat/sub", Address("chat", "sub", Address("inbox", "sub", ACME)), ()),
        ("/sub", ACME, ("sub",)),
        ("/sub/inbox", ACME, ("sub", "inbox")),
        ("/sub/get-messages", ACME, ("sub", "get-messages")),
        ("/files/sub/unknown/alice", ACME, ("files", "sub", "unknown", "alice")),
    ],
)
def test_the_first_known_class_after_sub_names_the_child(path: str, address: Address, tail: tuple[str, ...]) -> None:
    assert parse_path(f"/agents/tenant/acme{path}", kinds=KINDS) == Route(address, tail)


@pytest.mark.parametrize(
    "path",
    [
        "/sub/unknown/alice",
        "/sub/unknown/get-messages",
        "/sub/Inbox/alice",
        "/sub/inbox/alice/sub/unknown/x",
        "/sub/inbox/alice/sub/unknown/x/get-messages",
        "/sub/inbox/%",
        "/sub/inbox/%zz/get-messages",
        "/sub/inbox/%ff",
        "/sub/inbox/%ed%a0%80",
    ],
)
def test_an_unknown_class_or_a_broken_name_after_sub_names_nobody_rather_than_the_parent(path: str) -> None:
    assert parse_path(f"/agents/tenant/acme{path}", kinds=KINDS) is None


@pytest.mark.parametrize(
    ("segment", "name"),
    [
        ("a%2Fb%20c%3F%C3%A9", "a/b c?é"),
        ("a%252Fb", "a%2Fb"),
        ("..", ".."),
        ("%F0%9F%A6%8A", "🦊"),
        ("a+b", "a+b"),
        ("'%3B--", "';--"),
    ],
)
def test_a_childs_name_is_decoded_once(segment: str, name: str) -> None:
    route = parse_path(f"/agents/tenant/acme/sub/inbox/{segment}", kinds=KINDS)
    assert route == Route(Address("inbox", name, ACME), ())


@pytest.mark.parametrize("name", ["a/sub/chat/b", "a/b", "%2F", "é", "..", "a b", "_~.-", "?#%", "🦊"])
def test_a_childs_key_is_one_segment_whatever_its_name(name: str) -> None:
    key = ALICE.child("chat", name).key
    assert key.startswith("tenant/acme/sub/inbox/alice/sub/chat/")
    assert key.count("/") == ALICE.key.count("/") + 3
    assert key.isascii()
    assert parse_path(f"/agents/{key}", kinds=KINDS) == Route(ALICE.child("chat", name), ())


def test_different_names_have_different_keys() -> None:
    names = ["a/b", "a%2Fb", "a%252Fb", "A/b", "a", "A", "a ", "a+", "a%20"]
    assert len({ALICE.child("chat", name).key for name in names}) == len(names)


def test_a_line_goes_from_the_root_to_the_agent() -> None:
    room = ALICE.child("chat", "room")
    assert room.line == (ACME, ALICE, room)
    assert room.root == ACME == ACME.root


@requirement("fault:SC-06")
@pytest.mark.parametrize("segment", ["%00", "a%00b", "n" * (MAX_NAME_BYTES + 1), "%C3%A9" * (MAX_NAME_BYTES // 2 + 1)])
def test_a_childs_name_with_a_nul_or_too_long_is_refused(segment: str) -> None:
    with pytest.raises(BadRequest):
        parse_path(f"/agents/tenant/acme/sub/inbox/{segment}", kinds=KINDS)


@pytest.mark.parametrize("name", ["", "\0", "\ud800", "n" * (MAX_NAME_BYTES + 1)])
def test_code_cannot_give_a_child_such_a_name_either(name: str) -> None:
    with pytest.raises(BadRequest):
        ACME.child("inbox", name)


def test_the_longest_name_of_a_child_is_measured_decoded() -> None:
    longest = "é" * (MAX_NAME_BYTES // 2)
    encoded = "%C3%A9" * (MAX_NAME_BYTES // 2)
    assert parse_path(f"/agents/tenant/acme/sub/inbox/{encoded}", kinds=KINDS) == Route(
        ACME.child("inbox", longest), ()
    )


def test_sub_agents_go_four_levels_deep() -> None:
    path = "/agents/tenant/acme" + "/sub/chat/x" * MAX_DEPTH
    route = parse_path(path, kinds=KINDS)
    assert route is not None
    assert len(route.address.line) == 1 + MAX_DEPTH == 5
    with pytest.raises(BadRequest, match="4 levels"):
        parse_path(f"{path}/sub/chat/x", kinds=KINDS)
