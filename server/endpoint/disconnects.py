"""Clients that leave before their answer: work that costs much ends with them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

T = TypeVar("T")


async def while_connected(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """Return what some work returns; cancel it and raise ClientDisconnect when the client leaves.

    The body of the request must have been read. Takes two tasks, so it is for work that costs far more.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))
        if not working.cancelled():
            working.exception()  # nobody is left to be told


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
