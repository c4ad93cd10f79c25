"""Network streams to servers, and the parser of their replies."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import hiredis
from redis import exceptions
from redis._parsers.base import BaseParser
from redis.asyncio.connection import AbstractConnection

from graph.store.outages import OUTAGES

NO_REPLY = object()

logger = logging.getLogger("fanline.store")


async def open_stream(
    connection: AbstractConnection, tracked: Callable[[bool], None] | None = None
) -> asyncio.StreamWriter:
    """Let redis-py open a connection and perform the handshake, then take over its stream.

    With `tracked`, also turn on client tracking, in two more round trips, and call `tracked` with True if the server
    accepts it, else False. Raises only `OUTAGES`.
    """
    try:
        await connection.connect()  # type: ignore[no-untyped-call] # redis-py has no types here
        if tracked is not None:
            tracked(await begin_tracking(connection))
        writer = connection._writer
        if writer is None or await connection.can_read():
            raise exceptions.ConnectionError("the store closed the connection or sent a reply without a request")
        connection._reader = connection._writer = None
    except BaseException as error:
        await connection.disconnect(nowait=True)
        if isinstance(error, OUTAGES) or not isinstance(error, Exception):
            raise
        raise exceptions.ConnectionError(f"the store refused the connection: {error}") from error
    return writer


async def begin_tracking(connection: AbstractConnection) -> bool:
    """Turn on client tracking, and return True. If the server refuses, log the reason and return False.

    `CACHING`, which precedes each tracked read, is tried too, because a server may refuse only that command. As a side
    effect, the server tracks the keys of the next read.
    """
    try:
        for words in (("TRACKING", "ON", "OPTIN"), ("CACHING", "YES")):
            await connection.send_command("CLIENT", *words)
            await connection.read_response()
    except exceptions.ResponseError as error:
        logger.warning("The near cache is off, because the store refuses client tracking: %s", error)
        return False
    return True


def new_parser(on_error: Callable[[], None]) -> Any:
    """Return a parser of replies. It turns error replies into exceptions, and calls `on_error` for each of them."""

    def error_reply(text: str) -> Exception:
        on_error()
        error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call] # redis-py has no types here
        return error

    return hiredis.Reader(replyError=error_reply, encoding="utf-8", errors="surrogateescape", notEnoughData=NO_REPLY)
