"""Fixtures for tests of the executor."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest


@pytest.fixture
async def no_tasks_left_behind() -> AsyncIterator[None]:
    """Check that a test leaves no tasks behind and that asyncio reports no unhandled errors."""
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()
    assert complaints == []
