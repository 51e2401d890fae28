"""Writes with several agents at once until it is killed; says what was acknowledged. Argument: the data folder.

Each write is a message and the number of messages there are then: a write stored by half would make them disagree.
"""

import asyncio
import sys

from perdure.storage.contract import AppendMessage, LoadAgent, PutValue
from perdure.storage.sqlite import SqliteStore

AGENTS = 5


async def run(store: SqliteStore, agent: str) -> None:
    pos = (await store.read(LoadAgent(agent))).next_pos
    while True:
        message = AppendMessage(pos, f"m{pos}", pos - 1 if pos else None, "user", "x" * (pos * 37 % 5000), 0)
        await store.write(agent, store.epoch, [message, PutValue("count", "messages", str(pos + 1))])
        sys.stdout.write(f"{agent} {pos}\n")
        sys.stdout.flush()
        pos += 1


async def main(folder: str) -> None:
    store = await SqliteStore.open(folder)
    await asyncio.gather(*[run(store, f"agent-{number}") for number in range(AGENTS)])


asyncio.run(main(sys.argv[1]))
