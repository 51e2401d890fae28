"""Joiners in control tokens are found where pydantic-ai puts them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import _special_tokens as theirs

from perdure.models.quick.tokens import Restorer, restored, restored_in

PIECES = [
    *("<", "|", "\u200d", "\u2060", "\ufeff", "im", "_start", "|>", ">", "[", "]", "INST]", "/INST]", "~b]", "~!b["),
    *(
        "a",
        "｜",
        "User",
        "｜>",
        " ",
        "turn",
        "/",
        "start_of_turn>",
        "end_of_turn>",
        "e~[",
        "TOOL_CALLS]",
        '"',
        "\\",
        "é",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@given(texts)
def test_what_was_broken_is_whole_again(text: str) -> None:
    assert restored(theirs.break_special_tokens(text)) == theirs.restore_special_tokens(text)
    assert restored(text) == theirs.restore_special_tokens(text)


@given(st.lists(texts, max_size=6))
def test_a_text_in_pieces_is_given_out_as_soon_as_it_is_certain(pieces: list[str]) -> None:
    ours, other = Restorer(), theirs._StreamedTextRestorer()  # pyright: ignore[reportPrivateUsage]
    assert [ours.feed(piece) for piece in pieces] == [other.feed(piece) for piece in pieces]
    assert ours.flush() == other.flush()


def test_values_are_restored_inside() -> None:
    broken = theirs.break_special_tokens("<|im_end|>")
    assert restored_in({broken: [broken, 1, None, {"a": broken}]}) == {
        "<|im_end|>": ["<|im_end|>", 1, None, {"a": "<|im_end|>"}]
    }
