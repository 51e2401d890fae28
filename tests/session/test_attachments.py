"""Large files are taken out of a message's text and put back so that every byte is as it was."""

import base64
import hashlib
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.session.attachments import SMALLEST, cut_out, put_back, split
from tests.session.chats import file_of


def content(size: int, seed: int) -> bytes:
    return random.Random(seed).randbytes(size)


sizes = st.sampled_from([0, 1, SMALLEST - 1, SMALLEST, SMALLEST + 1, SMALLEST + 2, 3 * SMALLEST])
files = st.builds(
    lambda size, seed, media_type: file_of(content(size, seed), media_type),
    sizes,
    st.integers(0, 3),
    st.sampled_from(["image/png", "application/pdf", "text/plain", "image/svg+xml;charset=utf-8"]),
)
texts = st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=50))
broken = st.builds(
    lambda seed, tail: {"type": "file", "url": f"data:image/png;base64,{'A' * SMALLEST * 2}{seed}{tail}"},
    st.integers(0, 3),
    st.sampled_from(["=", "==", "\n", "ü", "B", "AB", "ABC"]),
)
parts = st.lists(
    st.one_of(files, texts, broken, st.sampled_from([None, 5, {"type": "file"}, {"type": "file", "url": 1}]))
)
layouts = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])


@settings(max_examples=80, deadline=None)
@given(parts, layouts, st.booleans())
def test_any_message_comes_back_byte_for_byte(items: list[Any], layout: dict[str, Any], escaped: bool) -> None:
    text = json.dumps({"id": "ü", "parts": items, "role": "user"}, **layout)
    if escaped:
        text = text.replace("/", "\\/")
    parted = split(text)
    if parted is None:
        return
    assert put_back(parted.text, parted.references, parted.data) == text
    assert cut_out(text, parted.references) == parted.text
    assert all(hashlib.sha256(data).hexdigest() == digest for digest, data in parted.data.items())
    assert {reference.digest for reference in parted.references} == parted.data.keys()
    assert len(parted.text) + sum(reference.size for reference in parted.references) == len(text)


@given(st.integers(0, 2**32), st.sampled_from([SMALLEST, SMALLEST + 1, SMALLEST + 2]))
@settings(max_examples=20, deadline=None)
def test_a_large_file_is_taken_out(seed: int, size: int) -> None:
    data = content(size, seed)
    text = json.dumps({"id": "u", "role": "user", "parts": [{"type": "text", "text": "Look:"}, file_of(data)]})
    parted = split(text)
    assert parted is not None
    assert len(parted.text) < 200
    assert list(parted.data.values()) == [data]
    assert json.loads(parted.text)["parts"][1]["url"] == "data:image/png;base64,", "what is left is a message still"


def test_a_file_that_comes_twice_in_one_message_is_held_once() -> None:
    data = content(SMALLEST, 1)
    other = content(SMALLEST, 2)
    text = json.dumps({"id": "u", "role": "user", "parts": [file_of(data), file_of(other), file_of(data)]})
    parted = split(text)
    assert parted is not None
    assert len(parted.references) == 3
    assert sorted(parted.data.values()) == sorted([data, other])
    assert put_back(parted.text, parted.references, parted.data) == text


@pytest.mark.parametrize(
    "part",
    [
        file_of(content(SMALLEST - 1, 1)),
        {"type": "text", "text": file_of(content(SMALLEST, 1))["url"]},
        {"type": "file", "url": "https://example.org/" + "a" * SMALLEST * 2},
        {"type": "file", "url": "data:text/plain," + "a" * SMALLEST * 2},
        {"type": "file", "url": f"data:image/png;base64,{base64.urlsafe_b64encode(b'~' * 2 * SMALLEST).decode()}"},
    ],
    ids=["small", "in a text", "an address", "not base64", "another alphabet"],
)
def test_everything_else_stays_in_the_text(part: dict[str, Any]) -> None:
    assert split(json.dumps({"id": "u", "role": "user", "parts": [part]})) is None


def test_base64_that_cannot_be_made_again_stays_in_the_text() -> None:
    # The last character has bits that no encoder sets.
    payload = base64.b64encode(content(SMALLEST, 1)).decode()[:-2] + "B="
    assert base64.b64encode(base64.b64decode(payload)).decode() != payload
    assert split(json.dumps({"id": "u", "parts": [{"type": "file", "url": f"data:a/b;base64,{payload}"}]})) is None


def test_what_looks_like_a_place_in_the_text_is_none() -> None:
    data = content(SMALLEST, 1)
    digest = hashlib.sha256(data).hexdigest()
    forged = {"type": "text", "text": f"data:image/png;base64, [22,{digest!r},100] {digest}"}
    text = json.dumps({"id": "u", "role": "user", "parts": [forged, file_of(data), forged]})
    parted = split(text)
    assert parted is not None
    assert put_back(parted.text, parted.references, parted.data) == text
