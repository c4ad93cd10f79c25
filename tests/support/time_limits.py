"""Time limits of asynchronous tests.

pytest-timeout raises its failure in the handler of a signal. uvloop logs exceptions of handlers and goes on, so a test
that waits in vain would never end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

import pytest

AsyncTest: TypeAlias = Callable[..., Awaitable[Any]]

MARGIN_SECONDS = 60.0
"""How long a test may prepare its fixtures and clean up. Then pytest-timeout prints all stacks and ends the process."""


def limit_time(item: pytest.Item) -> None:
    """Limit the time of an asynchronous test, but not with a limit of 0, as in the long profile."""
    if not isinstance(item, pytest.Function) or not iscoroutinefunction(item.obj):
        return
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker else item.config.getoption("timeout") or item.config.getini("timeout"))
    if seconds:
        item.obj = limited(item.obj, seconds)
        item.add_marker(pytest.mark.timeout(seconds + MARGIN_SECONDS, method="thread"), append=False)


def limited(test: AsyncTest, seconds: float) -> AsyncTest:
    """Return a test that raises TimeoutError where it waits when its time is over."""

    @wraps(test)
    async def run(*args: Any, **kwargs: Any) -> None:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await test(*args, **kwargs)
        except TimeoutError as error:
            if limit.expired():
                raise TimeoutError(f"The test takes longer than {seconds:g} seconds.") from error
            raise

    return run
