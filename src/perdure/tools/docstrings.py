"""Docstrings as tool descriptions: what the function does, and a sentence for each parameter.

Reads google, numpy and sphinx style. griffe is imported on first use. Imports nothing of perdure.
"""

from __future__ import annotations

import re
from typing import Any, Literal

__all__ = ["read_docstring"]

_NUMPY = re.compile(r"^[ \t]*\w[\w ]*\n[ \t]*-{3,}[ \t]*$", re.MULTILINE)
_SPHINX = re.compile(
    r"^[ \t]*:(param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)\b.*:", re.MULTILINE
)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description and the parameters' descriptions by name.

    Sections on results and exceptions are left out: they tell a caller in Python something, not a model.
    """
    if not text:
        return "", {}
    if "\n" not in text and ":" not in text:
        return text.strip(), {}
    return _parse(text)


def _parse(text: str) -> tuple[str, dict[str, str]]:
    from griffe import Docstring, DocstringSectionParameters

    style = _style(text)
    options: Any = {} if style == "numpy" else {"warn_unknown_params": False}
    sections = Docstring(text).parse(style, warnings=False, **options)
    words: list[str] = []
    parameters: dict[str, str] = {}
    for section in sections:
        if isinstance(section, DocstringSectionParameters):
            for item in section.value:
                parameters.setdefault(item.name.lstrip("*"), " ".join(item.description.split()))
        elif section.kind.value == "text":
            words.append(section.value)
        elif section.kind.value == "admonition":
            words.append(f"{section.title}: {section.value.contents}")
    return "\n\n".join(words).strip(), parameters


def _style(text: str) -> Literal["google", "numpy", "sphinx"]:
    if _SPHINX.search(text):
        return "sphinx"
    return "numpy" if _NUMPY.search(text) else "google"
