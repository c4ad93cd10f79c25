"""A single server as the store."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis import exceptions

from graph.errors import StoreUnavailable
from graph.store.commands import Command
from graph.store.near_cache import NearCache
from graph.store.node import Node, NodeSettings
from graph.store.outages import OUTAGES
from graph.store.read_pipeline import ANSWER_SECONDS, RETRIES, ReadPipeline
from graph.store.urls import BACKOFF, Servers


class SingleServer:
    """A client of one server. Exchanges whose connection fails are retried up to three times.

    Exchanges that the server refuses because it is a replica are retried too: its name may resolve to the new primary.
    """

    def __init__(self, servers: Servers, replicas: int, near: NearCache | None = None) -> None:
        [name] = servers.names
        terms = NodeSettings(ANSWER_SECONDS, replicas=replicas, near=near)
        self.node = Node(name, lambda retries: servers.connection(name, retries), RETRIES, terms)

    @property
    def reads(self) -> ReadPipeline:
        """Return the pipeline for reads."""
        return self.node.reads

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, errors included. Raises StoreUnavailable."""
        loop = asyncio.get_running_loop()
        for failures in range(RETRIES + 1):
            try:
                replies = await self.node.exchange(commands, loop.time() + ANSWER_SECONDS)
                if failures == RETRIES or exceptions.ReadOnlyError not in map(type, replies):
                    return replies
            except exceptions.ConnectionError as error:
                if failures == RETRIES:
                    raise StoreUnavailable(error) from error
            except OUTAGES as error:
                raise StoreUnavailable(error) from error
            await asyncio.sleep(BACKOFF.compute(failures + 1))
        raise AssertionError("unreachable")

    async def owner(self, key: str) -> Node:
        """Return the server."""
        return self.node

    async def primaries(self) -> list[Node]:
        """Return the server."""
        return [self.node]

    def begin_refresh(self) -> None:
        """Do nothing: there is no other server."""

    async def close(self) -> None:
        """Close all connections."""
        await self.node.close()
