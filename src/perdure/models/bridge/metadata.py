"""What a provider wants back with its own parts: ids, signatures and details, kept under the provider's key.

In a UI message it is the part's ``providerMetadata`` (``callProviderMetadata`` of a tool part):
``{"anthropic": {"signature": "…"}}``. Owns that form; knows no message.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol, TypedDict, cast

from pydantic_core import to_jsonable_python

__all__ = ["ProviderFields", "kept_from", "provider_metadata", "signature_from"]


class _Provided(Protocol):
    @property
    def id(self) -> str | None: ...
    @property
    def provider_name(self) -> str | None: ...
    @property
    def provider_details(self) -> dict[str, Any] | None: ...


class ProviderFields(TypedDict, total=False):
    """The arguments that a provider's part is made of again."""

    id: str
    provider_name: str
    provider_details: dict[str, Any]


def provider_metadata(part: _Provided, *, signature: str | None = None) -> dict[str, Any] | None:
    """``providerMetadata`` for ``part``; None when its provider wants nothing back."""
    fields: dict[str, Any] = {}
    if part.id:
        fields["id"] = part.id
    if signature:
        fields["signature"] = signature
    if part.provider_details:
        fields["details"] = to_jsonable_python(part.provider_details, fallback=str)
    return {part.provider_name: fields} if fields and part.provider_name else None


def kept_from(metadata: object, accepted: Collection[str]) -> ProviderFields:
    """What ``metadata`` keeps for the first of the ``accepted`` providers that it names; empty if there is none."""
    provider, value = _entry(metadata, accepted)
    fields: ProviderFields = {"provider_name": provider} if provider else {}
    if isinstance(value.get("id"), str):
        fields["id"] = value["id"]
    if isinstance(value.get("details"), dict):
        fields["provider_details"] = value["details"]
    return fields


def signature_from(metadata: object, accepted: Collection[str]) -> str | None:
    """The signature in ``metadata``, under the first of the ``accepted`` providers that it names."""
    signature = _entry(metadata, accepted)[1].get("signature")
    return signature if isinstance(signature, str) else None


def _entry(metadata: object, accepted: Collection[str]) -> tuple[str, dict[str, Any]]:
    if isinstance(metadata, dict):
        for provider, value in cast("dict[str, Any]", metadata).items():
            if provider in accepted and isinstance(value, dict):
                return provider, cast("dict[str, Any]", value)
    return "", {}
