"""Endurance: `python -m benchmarks.endurance [--quick] [--json FILE] [--plots DIR]`. On Linux.

A server, a worker and an embedded store run for a long time under a steady load of reads and changes. Once there are
enough posts, the oldest one is deleted before another one is published, and what would be kept for hours or days is
kept for a minute (`benchmarks/short_lives.py`), so anything that still grows would grow forever. Measures the memory of
each process and the size of the append-only file over time.
"""

import asyncio
import os
import random
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.command import Benchmark
from benchmarks.plots import plot
from benchmarks.report import Cell, Table
from benchmarks.short_lives import COMMAND, LIVES, SETTINGS
from server.embedded import EmbeddedStore
from tests.faults.checker.client import Client, Refused
from tests.faults.checker.system import System, system_in

PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20
SIGN_UPS = 2  # at once
WARM = 0.1  # the share of the time after which a process must have reached its size
LINES = ("server", "worker", "store", "data of the store", "append-only file")

FOLLOW = "mutation ($ids: [ID!]!) { followUsers(input: {userIds: $ids}) { userErrors { code } } }"
UNFOLLOW = "mutation ($ids: [ID!]!) { unfollowUsers(input: {userIds: $ids}) { userErrors { code } } }"
PUBLISH = """mutation ($text: String!) {
  publishPost(input: {text: $text, idempotencyKey: $text}) { post { id } userErrors { code } } }"""
LIKE = "mutation ($id: ID!) { likePost(input: {postId: $id}) { userErrors { code } } }"
DELETE = "mutation ($id: ID!) { deletePost(input: {postId: $id}) { userErrors { code } } }"
HOME = """{ viewer { id homeTimeline { id liveCursor entries(first: 30) {
  nodes { id author { id login name } ... on Post { text likesCount } } } } } }"""
NOTIFICATIONS = (
    "{ viewer { notifications { unreadCount entries(first: 10) { nodes { __typename id actors { id login } } } } } }"
)
SHARES = {"home": 50, "publish or delete": 24, "like": 18, "notifications": 6, "follow": 2}
LIKED = 200  # of the newest posts


@dataclass(frozen=True, slots=True)
class Sizes:
    """Users, follows per user, posts, requests per second, seconds of load, and seconds between samples."""

    users: int = 100
    follows: int = 30
    posts: int = 4000
    rate: int = 250
    seconds: int = 2400
    step: int = 30


SIZES = {"full": Sizes(), "quick": Sizes(seconds=60, step=3), "tiny": Sizes(4, 2, 5, 20, 3, 1)}


class Users:
    """Users who send requests at a steady rate. `answered` counts successes, and `failed` counts failures by reason."""

    def __init__(self, url: str, sizes: Sizes) -> None:
        self.clients = [Client(f"user{index}", url) for index in range(sizes.users)]
        self.answered = 0
        self.failed: Counter[str] = Counter()
        self._sizes = sizes
        self._posts: deque[tuple[Client, str]] = deque()
        self._texts = 0
        self._random = random.Random(1)

    async def join(self) -> None:
        """Sign up, and follow other users."""
        for start in range(0, len(self.clients), SIGN_UPS):
            await asyncio.gather(*(client.join() for client in self.clients[start : start + SIGN_UPS]))
        for client in self.clients:
            chosen = self._random.sample([each.id for each in self.clients if each is not client], self._sizes.follows)
            await client.insist(FOLLOW, ids=chosen)

    async def run(self) -> None:
        """Send requests until cancelled. A late response does not delay other requests."""
        began, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as requests:
            while True:
                number += 1
                await asyncio.sleep(began + number / self._sizes.rate - time.monotonic())
                requests.create_task(self._request())

    async def close(self) -> None:
        """Close all connections."""
        for client in self.clients:
            await client.close()

    async def _request(self) -> None:
        [kind] = self._random.choices([*SHARES], [*SHARES.values()])
        client = self._random.choice(self.clients)
        try:
            await self._send(kind, client)
        except (Refused, httpx.TransportError) as problem:
            self.failed[str(problem) if isinstance(problem, Refused) else type(problem).__name__] += 1
        else:
            self.answered += 1

    async def _send(self, kind: str, client: Client) -> None:
        match kind:
            case "publish or delete" if len(self._posts) < self._sizes.posts:
                self._texts += 1
                answer = await client.ask(PUBLISH, text=f"Post number {self._texts} of {client.login} about the sea")
                if answer["publishPost"]["post"] is None:
                    raise Refused([error["code"] for error in answer["publishPost"]["userErrors"]])
                self._posts.append((client, answer["publishPost"]["post"]["id"]))
            case "publish or delete":
                author, post = self._posts.popleft()
                await author.ask(DELETE, id=post)
            case "like" if self._posts:
                _, post = self._posts[-1 - self._random.randrange(min(LIKED, len(self._posts)))]
                await client.ask(LIKE, id=post)
            case "follow":
                other = self._random.choice(self.clients).id
                if other != client.id:
                    await client.ask(self._random.choice((FOLLOW, UNFOLLOW)), ids=[other])
            case "notifications":
                await client.ask(NOTIFICATIONS)
            case _:
                await client.ask(HOME)


def sample(system: System) -> list[float]:
    """Return the size of each of `LINES`, in MB. The data of the store is what Valkey has allocated."""
    data = system.folder / "data"
    store = EmbeddedStore(data)
    with store.client() as client:
        used = client.info("memory")["used_memory"]
    file = sum(map(size_of, data.rglob("appendonlydir/*")))
    return [*(resident(pid) / MIB for pid in (system.server.pid, system.worker.pid, store.pid)), used / MIB, file / MIB]


def size_of(path: Path) -> int:
    """Return the size of a file, or 0 if a rewrite has just removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def resident(pid: int) -> int:
    """Return the resident memory of a process without file-backed pages, in bytes."""
    fields = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    return (int(fields[1]) - int(fields[2])) * PAGE


async def measure(sizes: Sizes) -> AsyncIterator[Table]:
    """Sample the processes while users send requests at a steady rate."""
    rows: list[list[Cell]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with system_in(Path(folder), command=COMMAND, **SETTINGS) as system:
            users = Users(system.url, sizes)
            await users.join()
            load, began = asyncio.create_task(users.run()), time.monotonic()
            try:
                for due in range(0, sizes.seconds + 1, sizes.step):
                    await asyncio.wait([load], timeout=began + due - time.monotonic())
                    if load.done():
                        load.result()
                    rows.append([due / 60, *sample(system)])
            finally:
                load.cancel()
                await asyncio.gather(load, return_exceptions=True)
                await users.close()
    note = (
        f"{sizes.users} users who follow {sizes.follows} others send {sizes.rate} requests a second, and have up to "
        f"{sizes.posts:,} posts: "
        f"{', '.join(f'{share}% {kind}' for kind, share in SHARES.items())}. {LIVES} Memory is that of the process "
        "alone (RSS without files); the store is the embedded one."
    )
    yield growth(rows, users, note)
    yield Table("endurance", "Memory and append-only file over time", ("minutes", *LINES), rows, "In MB.")


def growth(rows: list[list[Cell]], users: Users, note: str) -> Table:
    """Return the growth of each size after the first tenth: means of the first and last quarter, and their ratio."""
    later: list[Any] = rows[int(len(rows) * WARM) :]
    quarter = max(1, len(later) // 4)
    table: list[list[Cell]] = []
    for column, name in enumerate(LINES, start=1):
        values = [row[column] for row in later]
        first, last = sum(values[:quarter]) / quarter, sum(values[-quarter:]) / quarter
        table.append([name, values[0], first, last, last / first, max(values)])
    reasons = "".join(f", {count:,} with {reason}" for reason, count in users.failed.most_common())
    columns = ("of", "MB after a tenth", "first quarter MB", "last quarter MB", "ratio", "most MB")
    return Table(
        "growth",
        "Growth under a steady load",
        columns,
        table,
        f"{note} {users.answered:,} answered, {users.failed.total():,} failed{reasons}.",
    )


def draw(tables: Mapping[str, Table], folder: Path) -> None:
    """Draw all sizes over time."""
    table = tables["endurance"]
    lines = {name: (table.column("minutes"), table.column(name)) for name in LINES}
    plot(folder / "endurance.svg", table.title, ("minutes", "MB"), lines, linear=True)


if __name__ == "__main__":
    Benchmark("Measure memory and the append-only file under a steady load.", SIZES, measure, draw).main()
