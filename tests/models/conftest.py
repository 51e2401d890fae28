"""A provider to talk to, and models that are closed after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from perdure.models.registry import close_models
from tests.models.provider_server import ProviderServer, provider_server


@pytest.fixture
async def server() -> AsyncIterator[ProviderServer]:
    async with provider_server() as running:
        yield running
        await close_models()
