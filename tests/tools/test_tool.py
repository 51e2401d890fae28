"""Running tools: declared ones, functions and methods."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import subprocess
import sys
import threading
import typing
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

from perdure.errors import ConfigurationError, InvalidToolInput
from perdure.tools import Tool, ToolContext, tool

pytestmark = pytest.mark.anyio

CONTEXT = ToolContext(agent=None, tool_call_id="c1", turn_id="t1")


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    limit: int = 5


class Node(BaseModel):
    name: str
    children: list[Node] = []


@dataclass
class Pair:
    left: int
    right: int


class Options(TypedDict, total=False):
    depth: int


def show(value: Any) -> str:
    return f"{type(value).__name__} {value}"


async def test_a_pydantic_model_as_schema_gives_the_function_an_instance() -> None:
    search = Tool(
        "search", description="Searches.", input_schema=Query, execute=lambda query: [query.text, query.limit]
    )

    assert search.spec.name == "search"
    assert search.spec.description == "Searches."
    assert search.spec.parameters == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "limit": {"type": "integer", "default": 5}},
        "required": ["text"],
        "additionalProperties": False,
    }
    assert await search.run({"text": "a"}, CONTEXT) == ["a", 5]
    with pytest.raises(InvalidToolInput, match=r"tool search:\n- text: Field required\n- page: Extra"):
        await search.run({"page": 2}, CONTEXT)


async def test_a_typed_dict_as_schema_gives_the_function_a_dict() -> None:
    walk = Tool("walk", description="", input_schema=Options, execute=show)

    assert walk.spec.parameters == {"type": "object", "properties": {"depth": {"type": "integer"}}}
    assert await walk.run({"depth": "3"}, CONTEXT) == "dict {'depth': 3}"


async def test_a_dataclass_as_schema_gives_the_function_an_instance() -> None:
    add = Tool("add", description="", input_schema=Pair, execute=lambda pair: pair.left + pair.right)

    assert await add.run({"left": 1, "right": 2}, CONTEXT) == 3


async def test_a_model_that_contains_itself_is_an_object_schema_too() -> None:
    plant = Tool("plant", description="", input_schema=Node, execute=lambda node: node.children[0].name)

    assert plant.spec.parameters["type"] == "object"
    assert list(plant.spec.parameters["properties"]) == ["name", "children"]
    assert await plant.run({"name": "a", "children": [{"name": "b"}]}, CONTEXT) == "b"


async def test_json_schema_checks_the_input_and_passes_a_copy() -> None:
    def spoil(value: dict[str, Any]) -> int:
        value["list"].append(0)
        return len(value["list"])

    schema = {
        "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/item"}}, "name": {"type": "string"}},
        "required": ["list"],
        "additionalProperties": False,
        "$defs": {"item": {"type": "integer", "minimum": 1}},
    }
    made = Tool("made", description="", input_schema=schema, execute=spoil)
    given = {"list": [1, 2]}

    assert made.spec.parameters == {"type": "object", **schema}
    assert await made.run(given, CONTEXT) == 3
    assert given == {"list": [1, 2]}
    with pytest.raises(InvalidToolInput) as caught:
        await made.run({"list": [1, "x", 0], "name": 1, "page": 1}, CONTEXT)
    assert sorted(str(caught.value).splitlines()[1:]) == [
        "- Additional properties are not allowed ('page' was unexpected)",
        "- list[1]: \"x\" is not of type \"integer\"",
        "- list[2]: 0 is less than the minimum of 1",
        '- name: 1 is not of type "string"',
    ]  # fmt: skip
    with pytest.raises(InvalidToolInput, match='"list" is a required property'):
        await made.run({}, CONTEXT)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "array"}, "must describe an object"),
        ({"type": "object", "properties": {"a": {"type": "no such type"}}}, "no valid JSON Schema"),
        ({"$ref": "#/nowhere"}, "no valid JSON Schema"),
        (int, "must describe an object"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any, message: str) -> None:
    made = Tool("made", description="", input_schema=schema, execute=show)

    with pytest.raises(ConfigurationError, match=f"^the input_schema of tool made (is )?{message}"):
        _ = made.spec


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="typing.TypedDict can be read from Python 3.12 on")
def test_a_typed_dict_that_this_python_cannot_read_is_refused_with_the_remedy() -> None:
    made = Tool("made", description="", input_schema=typing.TypedDict("Made", {"a": int}), execute=show)

    with pytest.raises(ConfigurationError, match=r"input_schema of tool made .*typing_extensions\.TypedDict"):
        _ = made.spec


async def test_a_schema_never_makes_the_server_fetch_something() -> None:
    visits: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
    made = Tool("made", description="", input_schema={"properties": {"a": {"$ref": url}}}, execute=show)

    with pytest.raises(ConfigurationError, match="another document"):
        await asyncio.to_thread(lambda: made.spec)
    server.close()
    await server.wait_closed()

    assert visits == []


async def test_execute_with_a_second_required_parameter_receives_the_context() -> None:
    def with_context(value: dict[str, Any], context: ToolContext) -> str:
        return context.tool_call_id

    def with_option(value: dict[str, Any], retries: int = 3) -> int:
        return retries

    first = Tool("first", description="", input_schema={}, execute=with_context)
    second = Tool("second", description="", input_schema={}, execute=with_option)

    assert await first.run({}, CONTEXT) == "c1"
    assert await second.run({}, CONTEXT) == 3


async def test_synchronous_functions_run_in_a_thread_at_the_same_time_and_with_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("from the caller")
    together = threading.Barrier(2, timeout=30)

    @tool
    def meet() -> list[Any]:
        together.wait()
        return [threading.current_thread() is threading.main_thread(), variable.get()]

    assert await asyncio.gather(meet.run({}, CONTEXT), meet.run({}, CONTEXT)) == [[False, "from the caller"]] * 2


@pytest.mark.parametrize("shape", ["function", "partial", "object", "lambda"])
async def test_asynchronous_functions_of_every_shape_run_on_the_loop(shape: str) -> None:
    loop = asyncio.get_running_loop()

    async def plain(value: dict[str, Any]) -> bool:
        return asyncio.get_running_loop() is loop

    class Callable:
        async def __call__(self, value: dict[str, Any]) -> bool:
            return await plain(value)

    shapes: dict[str, Any] = {
        "function": plain,
        "partial": functools.partial(plain),
        "object": Callable(),
        "lambda": lambda value: plain(value),
    }
    made = Tool("made", description="", input_schema={}, execute=shapes[shape])

    assert await made.run({}, CONTEXT) is True


@pytest.mark.parametrize("shape", ["sync", "async"])
async def test_what_the_function_raises_comes_out_unchanged(shape: str) -> None:
    error = LookupError("no such city")

    def sync() -> None:
        raise error

    async def asynchronous() -> None:
        raise error

    with pytest.raises(LookupError) as caught:
        await tool(sync if shape == "sync" else asynchronous).run({}, CONTEXT)

    assert caught.value is error


async def test_cancelling_a_call_does_not_wait_for_its_thread() -> None:
    started, release, finished = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    @tool
    def stuck() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait(30)
        loop.call_soon_threadsafe(finished.set)

    async with anyio.create_task_group() as group:
        group.start_soon(stuck.run, {}, CONTEXT)
        await started.wait()
        group.cancel_scope.cancel()

    assert not finished.is_set()
    release.set()
    await finished.wait()


async def test_cancelling_a_call_cancels_an_asynchronous_function() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def endless() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    call = asyncio.ensure_future(endless.run({}, CONTEXT))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert cancelled.is_set()


class Agent:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    async def delete_file(self, path: str, context: ToolContext | None = None) -> dict[str, Any]:
        """Deletes a file.

        Args:
            path: Which.
        """
        return {"deleted": path, "by": self.name, "call": context.tool_call_id if context else None}

    @tool(name="list-files", description="Lists them.")
    def list_files(self, folder: str = "/") -> list[str]:
        """Not for the model."""
        return [self.name, folder]

    @tool
    @staticmethod
    def double(number: int) -> int:
        return number * 2

    @tool
    @classmethod
    def whoami(cls, loud: bool = False) -> str:
        return cls.__name__.upper() if loud else cls.__name__


class SubAgent(Agent):
    @tool
    async def delete_file(self, path: str) -> str:  # type: ignore[override]
        return "kept"


async def test_a_method_is_a_tool_of_its_object() -> None:
    one, two = Agent("one"), Agent("two")

    assert list(one.delete_file.spec.parameters["properties"]) == ["path"]
    assert one.delete_file.spec.description == "Deletes a file."
    assert await one.delete_file.run({"path": "/a"}, CONTEXT) == {"deleted": "/a", "by": "one", "call": "c1"}
    assert await two.delete_file.run({"path": "/b"}, CONTEXT) == {"deleted": "/b", "by": "two", "call": "c1"}
    assert one.delete_file.spec.parameters is two.delete_file.spec.parameters


async def test_name_and_description_of_the_decorator_survive_binding() -> None:
    spec = Agent("one").list_files.spec

    assert (spec.name, spec.description) == ("list-files", "Lists them.")
    assert await Agent("one").list_files.run({}, CONTEXT) == ["one", "/"]


async def test_calling_a_tool_calls_its_function() -> None:
    agent = Agent("one")

    assert agent.list_files("/x") == ["one", "/x"]
    assert Agent.list_files(agent, folder="/y") == ["one", "/y"]
    assert await agent.delete_file("/a") == {"deleted": "/a", "by": "one", "call": None}
    assert Agent.double(2) == 4


async def test_static_and_class_methods_are_tools_through_object_and_class() -> None:
    assert await Agent("x").double.run({"number": 4}, CONTEXT) == 8  # pyright: ignore[reportAttributeAccessIssue]
    assert await Agent.double.run({"number": 4}, CONTEXT) == 8
    assert await SubAgent("x").whoami.run({"loud": True}, CONTEXT) == "SUBAGENT"
    assert list(Agent.whoami.spec.parameters["properties"]) == ["loud"]


async def test_a_subclass_may_replace_a_tool() -> None:
    assert await SubAgent("x").delete_file.run({"path": "/a"}, CONTEXT) == "kept"


def test_a_method_without_its_object_is_no_tool_for_a_model() -> None:
    with pytest.raises(ConfigurationError, match=r"tool delete_file is a method: .*self\.delete_file"):
        _ = Agent.delete_file.spec


async def test_a_function_that_becomes_a_method_is_read_anew() -> None:
    @tool
    def join(this: Any, word: str) -> str:
        return f"{this} {word}"

    class Owner:
        method = join

        def __str__(self) -> str:
            return "owner"

    assert list(join.spec.parameters["properties"]) == ["this", "word"]
    assert list(Owner().method.spec.parameters["properties"]) == ["word"]
    assert await Owner().method.run({"word": "a"}, CONTEXT) == "owner a"
    assert await join.run({"this": 1, "word": "a"}, CONTEXT) == "1 a"


def test_tools_look_like_their_functions() -> None:
    assert Agent.delete_file.__doc__ == inspect.unwrap(Agent.delete_file).__doc__
    assert list(inspect.signature(Agent("x").list_files).parameters) == ["folder"]
    assert repr(Agent("x").list_files) == "<FunctionTool list-files>"


async def test_a_renamed_tool_is_told_and_reported_by_its_new_name() -> None:
    original = Agent("x").list_files
    assert original.spec.name == "list-files"

    twin = original.renamed("ls")

    assert (twin.name, twin.spec.name) == ("ls", "ls")
    with pytest.raises(InvalidToolInput, match="Invalid input for tool ls"):
        await twin.run({"folder": 1}, CONTEXT)


PROGRAM = """
import json, sys
from perdure.tools import Tool, ToolContext, merge, tool

@tool
async def get_weather(city: str) -> dict:
    '''Weather.'''
    return {}

class Agent:
    @tool(name="rm")
    def delete(self, path: str) -> None: ...

declared = Tool("x", description="", input_schema={"properties": {}}, execute=lambda value: value)
merge([get_weather, Agent().delete, declared])
heavy = ("pydantic", "pydantic_core", "pydantic_ai", "griffe", "jsonschema_rs")
before = [name for name in heavy if name in sys.modules]
get_weather.spec
print(json.dumps([before, "pydantic" in sys.modules, "pydantic_ai" in sys.modules]))
"""


def test_making_tools_imports_no_schema_library_until_a_schema_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout) == [[], True, False]
