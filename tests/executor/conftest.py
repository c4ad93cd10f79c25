"""What tests of execution share."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest


@pytest.fixture
async def nothing_is_left_behind() -> AsyncIterator[None]:
    """See that every test's executions have ended all of their tasks, and that no failure went unseen."""
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()
    assert complaints == []
