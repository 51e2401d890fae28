"""What messages are freed from before they are stored."""

import copy
import json
from typing import Any

import pytest

from perdure.chat.clean import clean_answer, without_reserved
from perdure.protocol.messages import UIMessage
from tests.requirements import requirement


def cleaned(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    message: UIMessage = {"id": "a", "role": "assistant", "parts": list(parts)}
    before = copy.deepcopy(message)
    result = clean_answer(message)
    assert message == before, "the parts may be in use elsewhere"
    assert {key: value for key, value in result.items() if key != "parts"} == {"id": "a", "role": "assistant"}
    return result["parts"]


@requirement("engine:58")
def test_ids_that_only_openai_knows_are_taken_out() -> None:
    openai = {"itemId": "i", "reasoningEncryptedContent": "secret"}
    assert cleaned({"type": "text", "text": "t", "providerMetadata": {"openai": openai}}) == [
        {"type": "text", "text": "t"}
    ]
    assert cleaned({"type": "reasoning", "text": "r", "providerMetadata": {"openai": {**openai, "id": "rs"}}}) == [
        {"type": "reasoning", "text": "r", "providerMetadata": {"openai": {"id": "rs"}}}
    ]
    tool = {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {}, "output": 1}
    metadata = {"openai": {"itemId": "i"}, "google": {"thoughtSignature": "s"}}
    assert cleaned({**tool, "callProviderMetadata": metadata}) == [
        {**tool, "callProviderMetadata": {"google": {"thoughtSignature": "s"}}}
    ]


@requirement("engine:58")
def test_reasoning_that_says_nothing_goes_unless_its_provider_wants_it_back() -> None:
    redacted = {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "x"}}}
    nothing = {"type": "reasoning", "text": "", "state": "done"}
    emptied = {"type": "reasoning", "text": "", "providerMetadata": {"openai": {"itemId": "i"}}}
    assert cleaned(redacted, nothing, emptied, {"type": "text", "text": ""}) == [redacted, {"type": "text", "text": ""}]


def test_what_the_bridge_keeps_for_providers_stays() -> None:
    kept = {"openai": {"id": "rs_1", "signature": "encrypted", "details": {"a": 1}}, "anthropic": {"signature": "s"}}
    part = {"type": "reasoning", "text": "r", "providerMetadata": kept}
    assert cleaned(part) == [part]


@requirement("engine:56")
@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"a": 1}, {"input": {"a": 1}}),
        ('{"a":1}', {"input": {"a": 1}}),
        ("half {", {"input": {}, "rawInput": "half {"}),
        ("", {"input": {}}),
        (None, {"input": {}}),
        ([1], {"input": {}}),
        (5, {"input": {}}),
    ],
)
def test_the_input_of_a_call_is_stored_as_an_object(given: Any, stored: dict[str, Any]) -> None:
    tool = {"type": "tool-x", "toolCallId": "c", "state": "output-error", "errorText": "e"}
    assert cleaned({**tool, "input": given}) == [{**tool, **stored}]


def user(metadata: Any = None) -> str:
    fields = {} if metadata is None else {"metadata": metadata}
    return json.dumps({"id": "u", "role": "user", "parts": [{"type": "text", "text": "über"}], **fields}, indent=1)


@requirement("fault:PS-17", "engine:60")
def test_metadata_that_only_the_server_sets_is_taken_out_of_a_clients_message() -> None:
    given = user({"channel": "admin", "turnMetadata": {"user": "root"}, "ok": 1})
    assert json.loads(without_reserved(given)) == json.loads(user({"ok": 1}))
    assert json.loads(without_reserved(user({"channel": "admin"}))) == json.loads(user())


@pytest.mark.parametrize("metadata", [None, {"ok": 1}, [], "channel", {"nested": {"channel": 1}}])
def test_a_message_without_such_metadata_stays_byte_for_byte(metadata: Any) -> None:
    text = user(metadata)
    assert without_reserved(text) is text
