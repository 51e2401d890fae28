"""What the page last sent beside its messages: its tools and its fields, and what of that is stored."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.agent.page import PAGE, Page
from perdure.agent.values import NAMESPACE
from perdure.errors import BadRequest
from perdure.protocol.client_tools import ClientToolSpec
from perdure.storage.contract import DeleteValue, Operation, PutValue
from tests.requirements import requirement
from tests.support import ErrorLog


def spec(name: str, **parameters: Any) -> ClientToolSpec:
    return ClientToolSpec(name, f"Does {name}.", {"type": "object", **parameters})


BROKEN = spec("broken", properties={"x": {"type": "no such type"}})


def stored(operations: list[Operation]) -> str:
    """The text that these operations store."""
    (operation,) = operations
    assert isinstance(operation, PutValue)
    assert (operation.namespace, operation.key) == (NAMESPACE, PAGE)
    return operation.body


def test_a_page_that_was_never_seen_offers_nothing_and_stores_nothing() -> None:
    page = Page()
    assert (list(page.tools), page.body) == ([], {})
    assert page.asked(None, {}) == []
    assert page.asked([], {}) == []
    assert page.offers(None) == []
    assert page.clear() == []


@requirement("protocol:84", "engine:92", "fault:CT-18")
def test_what_it_sends_comes_back_after_a_restart() -> None:
    page = Page()
    again = Page(stored(page.asked([spec("where"), spec("clip")], {"locale": "ru", "tier": 2})))
    assert list(again.tools) == list(page.tools) == ["where", "clip"]
    assert again.body == {"locale": "ru", "tier": 2}
    assert again.tools["where"].execute is None
    assert again.asked([spec("where"), spec("clip")], {"locale": "ru", "tier": 2}) == [], "it is stored already"


def test_a_request_that_says_nothing_of_tools_keeps_them_and_its_fields_are_its_own() -> None:
    page = Page()
    page.asked([spec("where")], {"locale": "ru"})
    again = Page(stored(page.asked(None, {})))
    assert (list(again.tools), again.body) == (["where"], {})


@requirement("protocol:62", "engine:91", "fault:CT-10")
def test_an_empty_list_takes_the_tools_away() -> None:
    page = Page()
    page.asked([spec("where")], {})
    assert page.asked([], {}) == [DeleteValue(NAMESPACE, PAGE)]
    assert list(page.tools) == []
    assert page.asked([], {}) == []


@pytest.mark.parametrize("given", [None, []])
def test_a_result_that_brings_no_tools_changes_nothing(given: Any) -> None:
    page = Page()
    page.asked([spec("where")], {"locale": "ru"})
    assert page.offers(given) == []
    assert list(page.tools) == ["where"]


def test_a_result_that_brings_tools_replaces_them_and_keeps_the_fields() -> None:
    page = Page()
    page.asked([spec("where")], {"locale": "ru"})
    again = Page(stored(page.offers([spec("clip")])))
    assert (list(again.tools), again.body) == (["clip"], {"locale": "ru"})


@requirement("fault:CT-10")
def test_a_clear_forgets_all_of_it() -> None:
    page = Page()
    page.asked([spec("where")], {"locale": "ru"})
    assert page.clear() == [DeleteValue(NAMESPACE, PAGE)]
    assert (list(page.tools), page.body) == ([], {})
    assert page.clear() == []


def test_tools_that_cannot_be_used_are_refused_before_anything_changes() -> None:
    page = Page()
    page.asked([spec("where")], {})
    with pytest.raises(BadRequest, match="broken"):
        page.check([BROKEN])
    page.check(None)
    page.check([])
    page.check([spec("where")])
    assert list(page.tools) == ["where"]


def test_the_same_tools_are_made_once() -> None:
    page = Page()
    page.asked([spec("where")], {})
    made = page.tools["where"]
    page.asked([spec("where")], {"locale": "ru"})
    page.offers([spec("where")])
    assert page.tools["where"] is made


@pytest.mark.parametrize("text", ["{", "[]", '{"tools":[{"name":5}]}', '{"tools":5}'])
def test_what_is_damaged_counts_as_nothing(text: str, log: ErrorLog) -> None:
    page = Page(text)
    assert (list(page.tools), page.body) == ([], {})
    log.expect("is damaged and left aside")
    assert stored(page.asked([spec("where")], {})), "it is written anew"


def test_a_stored_tool_that_cannot_be_used_any_more_is_left_aside(log: ErrorLog) -> None:
    text = '{"tools":[{"name":"broken","description":"","parameters":{"type":"no such type"}}],"body":{"locale":"ru"}}'
    page = Page(text)
    assert (list(page.tools), page.body) == ([], {})
    log.expect("'broken' cannot be used")
