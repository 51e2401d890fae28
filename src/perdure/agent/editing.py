"""Looks at the arguments that a person gives instead of the model's, before a call is approved with them."""

from __future__ import annotations

from typing import Any, cast

from perdure.agent.hooks import sources
from perdure.agent.room import Room
from perdure.chat.interactions import Interaction
from perdure.errors import InvalidToolInput
from perdure.protocol import codec
from perdure.tools import merge

__all__ = ["edited_input"]


async def edited_input(room: Room, interaction: Interaction, given: Any) -> dict[str, Any]:
    """The arguments as they are stored: a JSON object, sharing nothing with what was given.

    A tool that the agent does not have at the moment, as one that only turns have, is asked when the call runs.

    Raises:
        InvalidToolInput: they are none, or do not fit the tool.
        Exception: what ``get_tools()`` raises.
    """
    try:
        edited: Any = codec.decode(codec.encode_text(given))
    except TypeError as error:
        raise InvalidToolInput(f"Invalid input for tool {interaction.tool}: it has no JSON form: {error}") from None
    if not isinstance(edited, dict):
        raise InvalidToolInput(f"Invalid input for tool {interaction.tool}: it must be an object, not {given!r:.60}")
    tool = merge(*await sources(room.think, room.page.tools)).get(interaction.tool)
    found = cast("dict[str, Any]", edited)
    if tool is not None:
        tool.check(found)
    return found
