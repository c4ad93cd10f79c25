"""Batches of commands, and coroutines that run with bounded concurrency."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from graph.chunks import chunks
from graph.store.commands import Command
from graph.store.store import Store

COMMANDS_PER_TRIP = 500
MAX_CONCURRENT = 16


async def send_in_batches(store: Store, commands: Sequence[Command]) -> list[Any]:
    """Send commands and return their replies in order. One round trip for every 500 commands."""
    replies: list[Any] = []
    for some in chunks(commands, COMMANDS_PER_TRIP):
        replies += await store.send(some)
    return replies


async def run_concurrently(work: Sequence[Callable[[], Awaitable[object]]]) -> None:
    """Run coroutine functions in groups of at most 16, one group after the other.

    Raises the first failure of a group after all functions of the group have ended, and does not start later groups.
    """
    for group in chunks(work, MAX_CONCURRENT):
        outcomes = await asyncio.gather(*(run() for run in group), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
