"""Stands before the tools of a turn: lets a call through, or has it wait for a person or a page.

Asks the tool whether a call needs approval; running it is ``tool_runner``'s business.
"""

from __future__ import annotations

from dataclasses import replace

from perdure.agent.dialogue import Dialogue
from perdure.agent.tool_runner import Call, Request
from perdure.errors import InvalidToolInput

__all__ = ["pass_gate"]


async def pass_gate(request: Request, dialogue: Dialogue) -> Request | None:
    """The request as it is to be run; ``None`` when its call waits for somebody now.

    What needs approval is looked at with the arguments that it will run with: those that do not fit are repaired first,
    by whoever knows what was meant. A call that cannot be made to fit is let through: running it says what is wrong.
    """
    tool = request.tool
    if request.approved or (tool.execute is not None and tool.needs_approval is False):
        return request
    fitting = request
    try:
        try:
            needed = await tool.asks(request.call.input, request.context)
        except InvalidToolInput as error:
            repaired = await request.job.repair(request.call, str(error))
            if repaired is None or repaired.tool != request.call.tool:
                raise
            needed = await tool.asks(repaired.input, request.context)
            fitting = replace(request, call=repaired)
            _show(repaired, dialogue)
    except InvalidToolInput:
        return replace(fitting, final=True)
    if needed:
        approval = request.job.new_id()
        dialogue.wait_for(fitting.call, "client" if tool.execute is None else "server", approval)
        return None
    if tool.execute is None:
        dialogue.wait_for(fitting.call, "client")
        return None
    return replace(fitting, final=True)


def _show(call: Call, dialogue: Dialogue) -> None:
    """Whoever decides must see what will run."""
    dialogue.emit({"type": "tool-input-available", "toolCallId": call.id, "toolName": call.tool, "input": call.input})
