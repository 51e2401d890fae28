"""The agents of docs/how-to/queue.md."""

import asyncio
import json

from starlette.requests import Request
from starlette.responses import Response

from perdure import Agent, QueueItem, Retry, Think


class Inbox(Think):
    model = "demo"

    async def on_request(self, request: Request) -> Response:
        letter = await request.json()
        await self.queue(self.read, letter, id=letter["id"])
        return Response(status_code=202)

    async def read(self, letter):
        await self.save_messages(f"A letter has come: {letter['text']}")


class Shop(Agent):
    async def order(self, book):
        await self.queue(self.ship, book, retry=Retry(max_attempts=5, base_delay_ms=500))

    async def ship(self, book, item: QueueItem):
        if item.interrupted:
            return  # begun before and cut off by the end of the server: it may be on its way already
        ...

    def close(self):
        waiting = [item.payload for item in self.get_queues(self.ship)]
        self.dequeue_all(self.ship)
        return waiting


class Weather(Agent):
    tasks: set[asyncio.Task]

    def on_start(self):
        self.tasks = set()

    async def forecast(self, city):
        patience = Retry(max_attempts=5, base_delay_ms=200)
        return await self.retry(lambda: fetch(city), patience, should_retry=lambda error: isinstance(error, OSError))

    def look_out(self, city):
        task = asyncio.create_task(self.tell_of(city))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def tell_of(self, city):
        async with self.keep_alive():
            weather = await fetch(city)  # may take minutes
            self.broadcast(json.dumps({"type": "weather", "city": city, "weather": weather}))


async def fetch(city):
    return "sunny"
