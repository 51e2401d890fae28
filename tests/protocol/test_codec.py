"""JSON in and out."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.protocol import codec
from tests.protocol.samples import AWKWARD_TEXTS, json_values


class Named(msgspec.Struct):
    id: str
    size: int = 0


# ── out ─────────────────────────────────────────────────────────────


@given(json_values())
def test_what_was_encoded_comes_back_the_same(value: Any) -> None:
    assert codec.decode(codec.encode_text(value)) == value


@given(json_values())
def test_what_was_encoded_is_json_to_others_too(value: Any) -> None:
    assert json.loads(codec.encode_text(value)) == value


@pytest.mark.parametrize("text", AWKWARD_TEXTS)
def test_text_survives(text: str) -> None:
    assert json.loads(codec.quote(text)) == text
    assert codec.encode({"text": text}) == codec.encode_text({"text": text}).encode()


def test_text_is_compact() -> None:
    assert codec.encode_text({"a": [1, "é\u2028"], "b": None}) == '{"a":[1,"é\u2028"],"b":null}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("\ud800", '"\ufffd"'),
        ("a\udc00b\ud83d", '"a\ufffdb\ufffd"'),
        ("\ud83d\ude00", '"😀"'),
        ({"\ud800": ["\udfff"]}, '{"\ufffd":["\ufffd"]}'),
        ({"a": ({"\udc00": 1},), "n": float("nan")}, '{"a":[{"\ufffd":1}],"n":null}'),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_are_joined(value: Any, text: str) -> None:
    assert codec.encode_text(value) == text


class Holder(msgspec.Struct):
    value: Any
    raw: msgspec.Raw = msgspec.Raw(b'"\\ud800"')


@dataclass
class Record:
    value: Any


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Holder("\ud800"), '{"value":"\ufffd","raw":"\ufffd"}'),
        ([Holder({"a": Record("\udc00")})], '[{"value":{"a":{"value":"\ufffd"}},"raw":"\ufffd"}]'),
        (Record(("\ud800", {"\udfff"})), '{"value":["\ufffd",["\ufffd"]]}'),
        (
            {"a": Record("\ud800"), "b": datetime(2026, 1, 2, tzinfo=UTC)},
            '{"a":{"value":"\ufffd"},"b":"2026-01-02T00:00:00Z"}',
        ),
    ],
)
def test_lone_surrogates_are_replaced_in_whatever_has_a_json_form(value: Any, text: str) -> None:
    assert codec.encode_text(value) == text


def test_what_has_no_json_form_is_refused_beside_lone_surrogates_too() -> None:
    with pytest.raises(TypeError):
        codec.encode_text(["\ud800", object()])


def test_sound_is_what_is_read_again() -> None:
    for value in ("a", "é", {"a": [1, None]}, ["\ud83d\ude00"], "\ud800", {"\ud800": float("nan")}):
        assert codec.sound(value) == codec.decode(codec.encode_text(value))
    kept = {"text": "é"}
    assert codec.sound(kept) is kept


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_has_not_become_null(number: float) -> None:
    assert codec.encode_text([number, {"n": number}]) == '[null,{"n":null}]'


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, 2**70, -(2**63) - 1, -(2**200)])
def test_integers_of_any_size_keep_their_digits(number: int) -> None:
    assert codec.encode_text(number) == str(number)
    assert codec.decode(str(number)) == number


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        codec.encode_text({"value": object()})


# ── in ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "tru",
        "{",
        '{"a":1,}',
        "[1] 2",
        "01",
        "'a'",
        '"\\q"',
        '"a\nb"',
        "NaN",
        "[Infinity]",
        '{"a":-Infinity}',
        '{"a":NaN,"b":"\\ud800"}',
        "\ufeff{}",
        "1" * 5000,
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(text)
    with pytest.raises(codec.DecodeError):
        codec.decode_as(dict[str, Any], text)


@pytest.mark.parametrize("data", [b"\xff", b'"\xc3"'])
def test_bytes_that_are_not_utf_8_are_refused(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud800"', "\ufffd"),
        ('["a\\udc00b"]', ["a\ufffdb"]),
        ('{"\\ud800":{"\\udfff":"\\ud83d\\ude00"}}', {"\ufffd": {"\ufffd": "😀"}}),
        ('"a\ud800"', "a\ufffd"),
        ('{"\udc00":1}', {"\ufffd": 1}),
    ],
    ids=["escape", "in a list", "in a key", "unescaped", "unescaped in a key"],
)
def test_lone_surrogates_come_in_as_replacement_characters(text: str, value: Any) -> None:
    assert codec.decode(text) == value


def test_a_number_beyond_all_bounds_comes_in_as_what_a_browser_would_send_on() -> None:
    assert codec.decode("[1e400,-1e400]") == [None, None]


@pytest.mark.parametrize("unit", ["[", '{"a":', '[{"a":'], ids=["lists", "objects", "both"])
@pytest.mark.parametrize("end", ["", '"\\ud800"', "1"], ids=["cut off", "with a lone surrogate", "with a number"])
def test_a_depth_bomb_is_refused_like_any_other_bad_text(unit: str, end: str) -> None:
    text = unit * 100_000 + end
    with pytest.raises(codec.DecodeError):
        codec.decode(text)
    with pytest.raises(codec.DecodeError):
        codec.decode_as(Named, text)
    with pytest.raises(codec.DecodeError):
        codec.decode_as(Named, f'{{"id":"a","more":{text}}}')


@pytest.mark.parametrize("depth", range(150, 1100, 50))
def test_between_shallow_and_too_deep_there_is_nothing_else(depth: int) -> None:
    for leaf in ("1", '"\\ud800"'):
        text = "[" * depth + leaf + "]" * depth
        try:
            raw = codec.decode_as(dict[str, msgspec.Raw], f'{{"a":{text}}}')["a"]
            value = codec.decode(bytes(raw))
        except codec.DecodeError:
            continue
        assert codec.encode_text(value).count("[") == depth


@given(st.text(max_size=40) | st.text('[]{}",:0123eE+-.\\u dntrf', max_size=40))
def test_decoding_any_text_gives_a_value_or_a_decode_error(text: str) -> None:
    try:
        value = codec.decode(text)
    except codec.DecodeError:
        return
    assert codec.decode(codec.encode_text(value)) == value


# ── in, checked ─────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    ["[]", "null", "1", '"a"', "{}", '{"id":1}', '{"id":null}', '{"id":"a","size":"1"}', '{"id":"\\ud800","size":[]}'],
)
def test_a_value_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode_as(Named, text)


def test_a_value_of_the_wanted_shape_is_read_and_what_it_has_more_is_passed_over() -> None:
    assert codec.decode_as(Named, '{"id":"a","size":2,"more":[{}]}') == Named("a", 2)


def test_lone_surrogates_do_not_keep_a_value_from_being_read() -> None:
    assert codec.decode_as(Named, '{"id":"\\ud800","size":2,"more":"\\udc00"}') == Named("\ufffd", 2)


def test_lone_surrogates_do_not_keep_raw_values_from_being_read() -> None:
    fields = codec.decode_as(dict[str, msgspec.Raw], '{"a":["\\ud800"],"\\udc00":1}')
    assert {key: codec.decode(bytes(raw)) for key, raw in fields.items()} == {"a": ["\ufffd"], "\ufffd": 1}


# ── how much there is ───────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "[]," * 300_000 + "0]", id="lists"),
        pytest.param("[" + "0," * 300_000 + "0]", id="numbers"),
        pytest.param("[" + r'"a\"[,b\\",' * 300_000 + "0]", id="texts"),
        pytest.param("{" + ",".join(f'"{number}":0' for number in range(300_000)) + "}", id="fields"),
        pytest.param("[" * 300_000, id="a depth bomb"),
    ],
)
def test_more_values_than_are_taken_are_seen_without_decoding(text: str) -> None:
    assert codec.has_too_many_values(text)
    assert codec.has_too_many_values(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "0," * 200_000 + "0]", id="numbers"),
        pytest.param('{"a":"' + "[,{" * 300_000 + '"}', id="a text with structure in it"),
        pytest.param('["' + r"\"[,{" * 300_000 + '"]', id="a text with quotes in it"),
        pytest.param('["' + r"\\" * 300_001 + '",[,[,[]', id="a text with backslashes at its end"),
        pytest.param('["\ud83d' + "☃,[" * 300_000 + '"]', id="a text with half a character"),
    ],
)
def test_what_stands_in_texts_is_no_value(text: str) -> None:
    assert not codec.has_too_many_values(text)


def test_halves_of_characters_are_not_put_right_in_more_values_than_are_taken() -> None:
    with pytest.raises(codec.DecodeError, match="more than 250,000 values"):
        codec.decode('["\\ud83d",' + "[]," * 300_000 + "0]")
