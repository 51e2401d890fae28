"""Opens a store and keeps it until it is killed. Argument: the data folder."""

import asyncio
import sys

from perdure.storage.sqlite import SqliteStore


async def main(folder: str) -> None:
    await SqliteStore.open(folder)
    sys.stdout.write("open\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main(sys.argv[1]))
