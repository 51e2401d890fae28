"""One request to the model: its chunks, put right, and which tool calls are to be run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, cast

from perdure.agent.dialogue import Dialogue
from perdure.agent.job import Job, Plan
from perdure.agent.tool_runner import Call
from perdure.agent.wellformed import WellFormed
from perdure.errors import InvalidToolInput, ModelError, ModelUnreachable, UnknownTool
from perdure.models.contract import Chunk, Finish, ModelRequest
from perdure.observability.tracing import model_span
from perdure.tools import Tool

__all__ = ["ModelStep"]


class ModelStep:
    """A step, from the request to the last chunk of the model."""

    def __init__(self, job: Job, plan: Plan, dialogue: Dialogue) -> None:
        self.calls: list[Call] = []
        """The calls to run, in the order in which the model made them."""
        self.called = False
        """Whether the model called any tool that it needs an answer for."""
        self._for_client: dict[str, Call] = {}
        self._job = job
        self._plan = plan
        self._dialogue = dialogue
        self._chunks = WellFormed(lambda call_id: dialogue.is_taken(call_id, plan), job.new_id)

    async def run(self) -> Finish:
        """Ask the model. Gives how it ended.

        Raises:
            ModelError: it did not answer. What it said before stays.
            Exception: what a hook of the application raises.
        """
        plan, dialogue = self._plan, self._dialogue
        before = len(dialogue.builder.parts)
        shown = dialogue.shown(plan)
        request = ModelRequest(plan.system, shown, dialogue.names.specs(plan.tools.specs), self._settings())
        with model_span(plan.model.name, plan.settings) as span:
            if span.keeps_messages:
                span.asked(plan.system, [entry.message for entry in shown])
            finish = await self._stream(request)
            span.finished(finish.reason, finish.usage)
            span.answered(dialogue.builder.parts[before:])
        return finish

    async def _stream(self, request: ModelRequest) -> Finish:
        name = self._plan.model.name
        async with contextlib.aclosing(self._plan.model.stream(request)) as events:
            async for event in events:
                if isinstance(event, Finish):
                    await self._pass_on(self._chunks.finish())
                    return event
                given: Any = event
                if not isinstance(given, dict):
                    raise ModelError(f"The model {name} streamed a {type(given).__name__}, which is no chunk.")
                await self._pass_on(self._chunks.take(event))
        raise ModelUnreachable(f"The model {name} broke off in the middle of its answer.")

    async def _pass_on(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            kind: str = chunk["type"]
            if kind.startswith("tool-input"):
                chunk = await self._admitted(chunk)
            elif kind.startswith("reasoning") and not self._job.send_reasoning:
                self._dialogue.keep(chunk)
                continue
            self._dialogue.emit(chunk)
            if kind == "tool-input-available":
                self._wait_for_client(chunk)
            if self._job.on_chunk is not None:
                await self._job.on_chunk(chunk)

    async def _admitted(self, chunk: Chunk) -> Chunk:
        """A chunk of a call with the tool's real name. A call that is complete is noted, to be run."""
        if "toolName" in chunk:
            chunk = {**chunk, "toolName": self._dialogue.names.real(chunk["toolName"])}
        match chunk["type"]:
            case "tool-input-available" if not chunk.get("providerExecuted"):
                return await self._admit(chunk)
            case "tool-input-error" if not chunk.get("providerExecuted"):
                return await self._admit_broken(chunk)
            case _:
                return chunk

    async def _admit(self, chunk: Chunk) -> Chunk:
        """Note a call that can be run; a call of a tool that is not there is repaired, or answered at once."""
        self.called = True
        name, tools = chunk["toolName"], self._plan.tools
        if name in tools:
            try:
                return self._noted(tools[name], Call(chunk["toolCallId"], name, chunk["input"]), chunk)
            except InvalidToolInput as error:
                return await self._admit_broken({**chunk, "type": "tool-input-error", "errorText": str(error)})
        shown = self._dialogue.names.shown
        error = str(UnknownTool(name, [shown(known) for known in tools]))
        return await self._admit_broken({**chunk, "type": "tool-input-error", "errorText": error})

    async def _admit_broken(self, chunk: Chunk) -> Chunk:
        """A call that cannot be run as it is: the application may know what was meant."""
        self.called = True
        made = Call(chunk["toolCallId"], chunk["toolName"], chunk["input"])
        repaired = await self._job.repair(made, chunk["errorText"])
        if repaired is None or repaired.tool not in self._plan.tools:
            return chunk
        kept = {key: value for key, value in chunk.items() if key != "errorText"}
        shown = {**kept, "type": "tool-input-available", "toolName": repaired.tool, "input": repaired.input}
        try:
            return self._noted(self._plan.tools[repaired.tool], repaired, shown)
        except InvalidToolInput as error:
            return {**chunk, "errorText": str(error)}

    def _noted(self, tool: Tool, call: Call, chunk: Chunk) -> Chunk:
        """Note a call that can be made. A page is not given arguments that do not fit.

        Raises:
            InvalidToolInput: it is to be run by a page, and its arguments do not fit.
        """
        if tool.execute is None:
            tool.check(call.input)
            if tool.needs_approval is False:
                self._for_client[call.id] = call
                return chunk
        self.calls.append(call)
        return chunk

    def _wait_for_client(self, chunk: Chunk) -> None:
        """A call is out that a page is to answer: it may do so at once."""
        if (call := self._for_client.pop(chunk["toolCallId"], None)) is not None:
            self._dialogue.wait_for(call, "client")

    def _settings(self) -> dict[str, Any]:
        settings = dict(self._plan.settings)
        choice: Any = settings.get("tool_choice")
        if isinstance(choice, (list, tuple)):
            chosen = cast("Sequence[Any]", choice)
            settings["tool_choice"] = [self._dialogue.names.shown(str(name)) for name in chosen]
        return settings
