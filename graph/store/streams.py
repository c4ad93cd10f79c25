"""Streams to servers, and the parser of what arrives over them."""

import asyncio
from collections.abc import Callable
from typing import Any

import hiredis
from redis import exceptions
from redis._parsers.base import BaseParser
from redis.asyncio.connection import AbstractConnection

from graph.store.outages import OUTAGES

NO_REPLY = object()


async def open_stream(connection: AbstractConnection) -> asyncio.StreamWriter:
    """Open a connection of redis-py, which performs the handshake, and take over its stream.

    Raises only `OUTAGES`.
    """
    try:
        await connection.connect()  # type: ignore[no-untyped-call] # redis-py has no types here
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


def new_parser(on_error: Callable[[], None]) -> Any:
    """Return a parser of replies, which calls `on_error` at each error reply. Error replies become exceptions."""

    def error_reply(text: str) -> Exception:
        on_error()
        error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call] # redis-py has no types here
        return error

    return hiredis.Reader(replyError=error_reply, encoding="utf-8", errors="surrogateescape", notEnoughData=NO_REPLY)
