"""Results of tools as providers are given them."""

import base64
import json
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent

from perdure.models.bridge.outputs import output_content


def url(data: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


PNG, PDF = url(b"png", "image/png"), url(b"pdf", "application/pdf")


@pytest.mark.parametrize("text", ["", "text", "see data:image/png;base64,AAAA", '{"a": 1}'])
def test_text_stays_as_it_is(text: str) -> None:
    assert output_content(text) == text


@pytest.mark.parametrize("value", [None, 5, [1, {"a": None}], {"text": "no file"}])
def test_other_values_are_json(value: Any) -> None:
    assert json.loads(output_content(value)) == value


@pytest.mark.parametrize(("file", "media_type"), [(PNG, "image/png"), (PDF, "application/pdf")])
def test_a_file_alone_is_shown(file: str, media_type: str) -> None:
    content = output_content(file)
    assert isinstance(content, BinaryContent)
    assert (content.data, content.media_type) == (base64.b64decode(file.partition(",")[2]), media_type)


def test_files_inside_are_shown_after_the_text_that_names_them() -> None:
    text, first, second = output_content({"shots": [PNG, {"doc": PDF}], "note": "two"})
    assert (first.data, second.data) == (b"png", b"pdf")
    assert json.loads(text) == {
        "shots": [
            f"[image/png, 3 bytes, shown as {first.identifier}]",
            {"doc": f"[application/pdf, 3 bytes, shown as {second.identifier}]"},
        ],
        "note": "two",
    }
    assert "base64" not in text


def test_of_other_files_the_model_is_told_type_and_size() -> None:
    assert output_content(url(b"\x00" * 10, "application/zip")) == "[application/zip, 10 bytes]"
    assert json.loads(output_content({"a": url(b"mp3", "audio/mpeg")})) == {"a": "[audio/mpeg, 3 bytes]"}


@pytest.mark.parametrize(
    "broken", ["data:", "data:image/png;base64,!!", "data:image/png,raw", "data:text/plain;base64,eA=="]
)
def test_a_url_that_holds_no_file_is_text(broken: str) -> None:
    assert output_content({"a": broken}) == json.dumps({"a": broken}, separators=(",", ":"))
