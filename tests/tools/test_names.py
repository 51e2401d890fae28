"""The names by which a model knows the tools."""

import re

import pytest

from perdure.models.contract import HistoryMessage, ToolSpec
from perdure.protocol.messages import tool_name
from perdure.tools.names import ToolNames

SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


@pytest.mark.parametrize("name", ["add", "__proto__", "constructor", "toString", "a-b_C9", "x" * 64])
def test_a_name_that_providers_take_is_its_own(name: str) -> None:
    names = ToolNames([name])
    assert (names.shown(name), names.real(name)) == (name, name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("fs.read/file", "fs_read_file"),
        ("a\nb", "a_b"),
        ("a" * 65, "a" * 64),
        ("имя", "tool"),
        ("", "tool"),
        ("3d", "_3d"),
        ("-x", "_-x"),
        ("x" * 63 + "é", "x" * 63),
    ],
)
def test_another_is_cleaned_and_found_again(name: str, shown: str) -> None:
    names = ToolNames([name])
    assert names.shown(name) == shown
    assert SAFE.fullmatch(shown)
    assert names.real(shown) == name


def test_names_that_become_the_same_are_told_apart() -> None:
    wanted = ["a.b", "a_b", "a/b", "a b", "имя", "tool", "z" * 70, "z" * 71]
    names = ToolNames(wanted)
    shown = [names.shown(name) for name in wanted]
    assert shown[1] == "a_b"
    assert len(set(shown)) == len(wanted)
    assert all(SAFE.fullmatch(name) for name in shown)
    assert [names.real(name) for name in shown] == wanted


def test_a_name_that_the_model_makes_up_means_itself() -> None:
    assert ToolNames(["a.b"]).real("zzz") == "zzz"


def test_specs_keep_all_but_the_name() -> None:
    spec = ToolSpec("a.b", "Does it.", {"type": "object"})
    assert list(ToolNames(["a.b"]).specs([spec])) == [ToolSpec("a_b", "Does it.", {"type": "object"})]
    plain = (ToolSpec("ab", "", {}),)
    assert ToolNames(["ab"]).specs(plain) is plain


def message(*names: str, dynamic: str | None = None) -> HistoryMessage:
    parts = [{"type": f"tool-{name}", "toolCallId": f"c-{name}", "state": "output-available"} for name in names]
    if dynamic is not None:
        parts.append({"type": "dynamic-tool", "toolName": dynamic, "toolCallId": "d", "state": "output-available"})
    return HistoryMessage.of({"id": "a1", "role": "assistant", "parts": [{"type": "text", "text": "Hi"}, *parts]})


def test_calls_of_the_past_are_renamed_also_of_tools_that_are_gone() -> None:
    history = [message("add"), message("a.b", "gone!", dynamic="a.b")]
    names = ToolNames(["add", "a.b"])
    shown = names.history(history)
    assert shown[0] is history[0]
    assert [tool_name(part) for part in shown[1].message["parts"][1:]] == ["a_b", "gone", "a_b"]
    assert shown[1].message["parts"][3]["type"] == "dynamic-tool"
    assert history[1].message["parts"][1]["type"] == "tool-a.b"


def test_a_conversation_without_odd_names_is_the_same_object() -> None:
    history = [message("add"), HistoryMessage.of({"id": "u1", "role": "user", "parts": []})]
    assert ToolNames(["a.b"]).history(history) is history


def test_what_was_renamed_is_kept_with_the_message() -> None:
    history = [message("a.b")]
    assert ToolNames(["a.b"]).history(history)[0] is ToolNames(["a.b"]).history(history)[0]


def test_a_stored_message_without_calls_is_not_decoded_for_it() -> None:
    entry = HistoryMessage(text='{"id":"u1", broken')
    assert ToolNames(["a.b"]).history([entry]) == [entry]
