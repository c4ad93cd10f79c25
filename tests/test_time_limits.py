"""A test that waits in vain fails when its time is over, and shows where it waits."""

import asyncio
import traceback

import pytest

from tests.support.time_limits import limited


async def test_a_test_that_waits_in_vain_fails_where_it_waits() -> None:
    """Tests run in uvloop, where the signal of pytest-timeout has no effect."""

    async def wait_in_vain() -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"longer than 0\.01 seconds") as raised:
        await limited(wait_in_vain, 0.01)()
    assert "in wait_in_vain" in "".join(traceback.format_exception(raised.value))


async def test_a_timeout_of_the_test_itself_stays_as_it_is() -> None:
    """Only the limit of the test is described."""

    async def give_up() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError, match=r"^$"):
        await limited(give_up, 60)()
