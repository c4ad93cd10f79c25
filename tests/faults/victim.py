"""A program that performs mutations and is killed after a given number of store calls.

Its argument is the store's URL. For each line `mutation calls` on standard input, it forks a process, which is much
faster than starting one, and prints `killed`, or `finished` if the mutation took fewer calls.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from graph import Graph
from graph.store.commands import Command
from tests.faults.small_world import CHEAP, perform
from tests.support.graphs import archive_beside
from tests.support.stores import InterceptedStore


class DeadlyStore(InterceptedStore):
    """Kills the process before it sends more than `left` calls."""

    left: float = float("inf")

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return await super()._exchange(commands)


async def act(url: str, mutation: str, calls: int) -> None:
    """Perform a mutation with this many store calls."""
    store = DeadlyStore(url, single_slot=True)
    graph = Graph(store, archive_beside(url), CHEAP)
    await graph.users.ids_of_logins(["alice"])
    await perform(graph, mutation, before=lambda: setattr(store, "left", calls))
    store.left = float("inf")
    await graph.close()


def main(url: str) -> None:
    """Fork a process for each line of standard input."""
    for line in sys.stdin:
        mutation, calls = line.split()
        child = os.fork()
        if child == 0:
            asyncio.run(act(url, mutation, int(calls)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            print("killed", flush=True)
        else:
            print("finished" if status == 0 else f"failed with {status}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
