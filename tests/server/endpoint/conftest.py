"""The world shared by the tests of a module about conversations."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server.endpoint.conversation_stage import Stage, on_stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """Serve one world for all tests."""
    async with on_stage(tmp_path_factory.mktemp("inputs")) as stage:
        yield stage
