"""JSON values as browsers, models and users make them."""

from typing import Any

from hypothesis import strategies as st

__all__ = ["AWKWARD_TEXTS", "json_objects", "json_values"]

AWKWARD_TEXTS = [
    "",
    'say "hi" \\ and /',
    "Grüße, 世界 – 👩‍👩‍👧‍👦 🏳️‍🌈",
    "line\u2028separator, paragraph\u2029separator, \ufeff",
    "a NUL \x00, \x1b, \x7f and \r\n\t",
    "\U0010ffff\ud7ff\ue000",
    "</script><!--",
]
"""Texts that encoders are known to mangle."""

_texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(AWKWARD_TEXTS)
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts


def json_values(max_leaves: int = 20) -> st.SearchStrategy[Any]:
    """Any JSON value."""
    return st.recursive(
        _scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
        max_leaves=max_leaves,
    )


def json_objects() -> st.SearchStrategy[dict[str, Any]]:
    """Any JSON object."""
    return st.dictionaries(_texts, json_values(8), max_size=5)
