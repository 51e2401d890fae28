"""The agents of docs/how-to/schedule.md."""

import json

from perdure import Retry, Schedule, Think, ToolContext, tool


@tool
async def remind_me(ctx: ToolContext, minutes: float, text: str) -> dict:
    """Remind the user of something later."""
    schedule = ctx.agent.schedule(minutes * 60, "remind", {"text": text})
    return {"id": schedule.id, "due": schedule.due.isoformat()}


class Secretary(Think):
    model = "demo"

    def get_tools(self):
        return [remind_me]

    def on_start(self):
        self.schedule("0 9 * * MON-FRI", self.greet, tz="Europe/Berlin")
        self.schedule_every(600, self.look_at_mail)

    def remind(self, payload):
        self.broadcast(json.dumps({"type": "reminder", "text": payload["text"]}))

    def greet(self):
        self.broadcast(json.dumps({"type": "greeting"}))

    async def look_at_mail(self): ...


class Shop(Think):
    model = "demo"

    def order(self, item):
        self.schedule(5, self.pay, item, retry=Retry(max_attempts=5, base_delay_ms=500))

    async def pay(self, item, schedule: Schedule):
        if schedule.interrupted:
            return  # begun before and cut off by the end of the server: it may be paid already
        ...

    def forget_orders(self):
        for schedule in self.get_schedules(kind="delayed"):
            self.cancel_schedule(schedule.id)
