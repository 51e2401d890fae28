"""What must hold of calls that wait, whatever has happened."""

from __future__ import annotations

from collections import Counter
from typing import Any

from perdure.protocol import codec
from perdure.protocol.messages import UIMessage, is_settled, is_tool_part
from perdure.storage.contract import LoadBranch, LoadOffPath, LoadPath, OpenTurn, Operation, Store
from perdure.storage.interactions import LoadInteractions, PutInteraction
from tests.faults.calls.player import Player
from tests.faults.calls.world import World

__all__ = ["check_continuations", "check_rest", "check_runs", "open_parts", "stored_messages"]


async def stored_messages(store: Store, key: str) -> list[UIMessage]:
    """All messages, also those of other branches."""
    bodies = [row.body for row in await store.read(LoadPath(key))]
    for place in await store.read(LoadOffPath(key)):
        bodies += [row.body for row in (await store.read(LoadBranch(key, place.pos, max_rows=1))).rows]
    return [codec.decode(body) for body in bodies]


def open_parts(messages: list[UIMessage]) -> Counter[str]:
    """The calls that have no result, and how often."""
    return Counter(
        part["toolCallId"]
        for message in messages
        for part in message["parts"]
        if is_tool_part(part) and not is_settled(part)
    )


async def check_rest(store: Store, key: str) -> None:
    """No turn runs: each call that is open is recorded, each that is recorded is open, and nothing should have gone on
    that has not."""
    rows = [row for row in await store.read(LoadInteractions(key)) if row.state != "settled"]
    opened = open_parts(await stored_messages(store, key))
    assert opened == Counter(row.call for row in rows), f"open calls {opened}, but recorded are {rows}"
    groups: dict[str, list[Any]] = {}
    shown = {row.id for row in await store.read(LoadPath(key))}
    for row in await store.read(LoadInteractions(key)):
        if (body := codec.decode(row.body))["message"] in shown:
            groups.setdefault(row.turn, []).append(body)
    for group in groups.values():
        waits = any(_waits(body) for body in group)
        assert waits or not any(body.get("go_on") for body in group), f"nothing has gone on after {group}"
        assert not any(body.get("state") == "running" for body in group), f"nothing runs, but {group}"


def _waits(body: Any) -> bool:
    state = body.get("state", "waiting")
    return state == "waiting" or (state == "approved" and body["runs"] == "client")


def check_runs(world: World, player: Player) -> None:
    """No call ran twice, and none that nobody had approved."""
    assert all(count == 1 for count in world.ran.values()), f"calls ran more than once: {world.ran}"
    unapproved = {call for call in world.ran_as.values() if call not in player.approved}
    assert not unapproved, f"calls ran without approval: {unapproved}"


def check_continuations(operations: list[Operation], *, calm: bool, restarts: int) -> None:
    """There is one turn for each group of answers; in a plan in which nothing else happens, exactly one."""
    opened = [each for each in operations if isinstance(each, OpenTurn) and each.trigger == "auto-continuation"]
    groups = Counter(codec.decode(turn.request)["group"] for turn in opened)
    assert all(count <= 1 + restarts for count in groups.values()), f"too many continuations: {groups}"
    if not calm:
        return
    calls: dict[str, dict[str, Any]] = {}
    for each in operations:
        if isinstance(each, PutInteraction):
            calls.setdefault(each.row.turn, {})[each.row.call] = codec.decode(each.row.body)
    wanted = {
        turn
        for turn, bodies in calls.items()
        if not any(_waits(body) for body in bodies.values()) and any(body.get("go_on") for body in bodies.values())
    }
    assert set(groups) == wanted, f"continued after {set(groups)}, wanted after {wanted}"
