"""What becomes of the result of a tool."""

from __future__ import annotations

import array
import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import types
import uuid
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from perdure.errors import ToolError
from perdure.protocol import codec
from perdure.tools.output import json_ready


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Model(BaseModel):
    at: datetime.datetime
    ratio: float = math.nan


@dataclasses.dataclass
class Record:
    model: Model
    data: bytes
    ratio: float = math.inf


class Packed(msgspec.Struct, rename="camel"):
    first_name: str


class Text(str):
    __slots__ = ()


NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)
KEYS = {"1": "a", "null": "b", "false": "c", "red": "d", "2026-11-30": "e"}
Named = collections.namedtuple("Named", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("text", "text"),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        (math.nan, None),
        (-math.inf, None),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        (frozenset(), []),
        (collections.deque([1]), [1]),
        (range(3), [0, 1, 2]),
        (Named(1, 2), [1, 2]),
        (collections.OrderedDict(a=1), {"a": 1}),
        (types.MappingProxyType({"a": (1,)}), {"a": [1]}),
        (NOON, "2026-11-30T12:00:00Z"),
        (NOON.date(), "2026-11-30"),
        (datetime.time(9, 30), "09:30:00"),
        (datetime.timedelta(minutes=1, seconds=30), "PT90S"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (Color.RED, "red"),
        (Level.HIGH, 3),
        (Text("t"), "t"),
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        (array.array("i", [1, 2]), [1, 2]),
        (Packed("Ada"), {"firstName": "Ada"}),
        (Model(at=NOON), {"at": "2026-11-30T12:00:00Z", "ratio": None}),
        (
            [Record(Model(at=NOON, ratio=1), b"x")],
            [
                {
                    "model": {"at": "2026-11-30T12:00:00Z", "ratio": 1.0},
                    "data": "data:application/octet-stream;base64,eA==",
                    "ratio": None,
                }
            ],
        ),
        ({1: "a", None: "b", False: "c", Color.RED: "d", NOON.date(): "e"}, KEYS),
    ],
    ids=repr,
)
def test_a_result_becomes_json(value: Any, expected: Any) -> None:
    result = json_ready(value, "t")

    assert result == expected
    assert json.loads(codec.encode_text(result)) == expected
    assert type(result) in (dict, list, str, int, float, bool, type(None))


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"%PDF-1.7", "application/pdf"),
        (b"\x00\xff", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_bytes_become_a_data_url_that_says_what_they_are(start: bytes, kind: str, wrap: Any) -> None:
    head, _, body = json_ready(wrap(start), "t").partition(",")

    assert head == f"data:{kind};base64"
    assert base64.b64decode(body) == start


def test_a_result_is_a_copy() -> None:
    kept = {"list": [1]}
    result = json_ready(kept, "t")
    kept["list"].append(2)

    assert result == {"list": [1]}


class Opaque:
    pass


class BinaryModel(BaseModel):
    data: bytes


async def generate() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Opaque(), "a Opaque"),
        ([{"deep": Opaque()}], "a Opaque"),
        (Opaque, "a type"),
        (1j, "a complex"),
        (ValueError("x"), "a ValueError"),
        (iter([1]), r"a generator or iterator \(list_iterator\)"),
        (generate(), r"a generator or iterator \(async_generator\)"),
        ({(1, 2): 1}, r"an object with \(1, 2\) as a key"),
        (BinaryModel(data=b"\xff"), r"a BinaryModel \(.*utf-8"),
    ],
)
def test_what_has_no_json_form_is_an_error_that_names_it(value: Any, named: str) -> None:
    with pytest.raises(ToolError, match=rf"^Tool look returned {named}.*, which has no JSON form\.$"):
        json_ready(value, "look")


@dataclasses.dataclass
class Holder:
    thing: Any


def test_what_has_no_json_form_is_found_inside_records_too() -> None:
    with pytest.raises(ToolError, match="returned a Opaque, which has no JSON form"):
        json_ready(Holder(Opaque()), "look")


def test_a_result_that_contains_itself_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(ToolError, match="contains itself"):
        json_ready(loop, "t")
