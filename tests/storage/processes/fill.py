"""Writes until its files may not grow any more, then with room again. Argument: the data folder.

The limit on the size of a process's files stands in for a full disk: the system refuses to write. Prints what happened.
"""

import asyncio
import json
import resource
import sys

from perdure.errors import StorageError
from perdure.storage.contract import LoadValue, PutValue
from perdure.storage.sqlite import SqliteStore

BODY = "x" * 1_000_000


def allow(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


async def write(store: SqliteStore, agent: str, body: str) -> None:
    await store.write(agent, store.epoch, [PutValue("n", "k", body)])


async def attempt(store: SqliteStore, agent: str, body: str) -> str:
    try:
        await write(store, agent, body)
    except StorageError as error:
        return f"{type(error).__name__}: {error}"
    return "stored"


async def main(folder: str) -> None:
    store = await SqliteStore.open(folder)
    await write(store, "a", "old")
    allow(500_000)
    refused = await asyncio.gather(*[attempt(store, agent, BODY) for agent in ("a", "b", "c")])
    meanwhile = await store.read(LoadValue("a", "n", "k"))
    allow(resource.RLIM_INFINITY)
    later = await asyncio.gather(*[attempt(store, agent, f"new {agent}") for agent in ("a", "b", "c")])
    values = [await store.read(LoadValue(agent, "n", "k")) for agent in ("a", "b", "c")]
    await store.close()
    sys.stdout.write(json.dumps({"refused": refused, "meanwhile": meanwhile, "later": later, "values": values}))


asyncio.run(main(sys.argv[1]))
