"""A data folder whose append-only file is damaged, and what was acknowledged before."""

import os
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from graph import Graph
from graph.archive.archive import Archive
from graph.log.events import PostPublished
from graph.log.numbers import entry_id
from graph.log.requests import request_of
from graph.model import MAX_NUMBER
from server.append_only_file import last_file
from server.embedded import Durability, EmbeddedStore
from tests.faults.archive_world import MANY, archive_all, settle
from tests.support.graphs import CHEAP

TAIL = 64 * 1024
TEXT = "post %s of bob\n*3\n$4\nXADD\n"
KINDS = ("cut", "garbled", "zeroed", "zeros after the end")


@dataclass
class Written:
    """What was acknowledged, and the bytes of the append-only file that hold it.

    `events` are the numbers in the log, `requests` the posts by idempotency key, and `sessions` the live sessions.
    """

    author: int = 0
    events: list[int] = field(default_factory=list)
    archived: set[int] = field(default_factory=set)
    requests: dict[str, int] = field(default_factory=dict)
    sessions: list[str] = field(default_factory=list)
    content: bytes = b""

    def place_of(self, text: str) -> tuple[int, int]:
        """Return the first and last byte of the first command that writes a text."""
        middle = self.content.index(text.encode())
        start = self.content.rfind(b"\r\n*", 0, middle) + 2
        return start, self.content.index(b"\r\n*", middle) + 1

    def place_of_event(self, number: int) -> tuple[int, int]:
        """Return the first and last byte of the command that adds an event to the log."""
        return self.place_of(f"{{log}}\r\n${len(entry_id(number))}\r\n{entry_id(number)}\r\n")


@dataclass(frozen=True)
class Change:
    """Bytes that are damaged: from `first` to `last`, and with `is_cut`, all bytes after them."""

    first: int
    last: int
    is_cut: bool = False

    def spares(self, place: tuple[int, int]) -> bool:
        """Return True if the bytes of a command are unchanged."""
        return place[1] < self.first or (place[0] > self.last and not self.is_cut)


async def write_store(folder: Path) -> Written:
    """Fill a data folder, and kill the store. The archive lacks the last events, and some are not projected."""
    written = Written()
    with EmbeddedStore(folder, Durability.RELAXED) as store:
        async with serving(store, folder) as graph:
            await settle(graph)
            [author] = await graph.users.ids_of_logins(["bob"])
            written.author = author or 0
            await publish(graph, written, 300)
            await archive_all(graph)
            written.archived = {row.number for row in await graph.archive.range(0, MAX_NUMBER, MANY)}
            await publish(graph, written, 40)
            await graph.worker().drain()
            await publish(graph, written, 10)
            events = [event async for event in graph.log.replay(0, await graph.log.last())]
            written.events = [event.number for event in events]
        os.kill(store.pid, signal.SIGKILL)
    file = last_file(store.folder)
    assert file is not None
    written.content = file.read_bytes()
    return written


async def publish(graph: Graph, written: Written, count: int) -> None:
    """Publish posts with idempotency keys. Some are deleted, and every tenth is followed by a log-in."""
    for n in range(count):
        if n % 10 == 0:
            written.sessions.append((await graph.sessions.start(written.author)).id)
        if n % 7 == 3:
            await graph.posts.delete(written.author, (await graph.posts.publish(written.author, "soon deleted")).id)
        key = f"key-{len(written.requests)}"
        written.requests[key] = (await graph.posts.publish(written.author, TEXT % key, idempotency_key=key)).id


@asynccontextmanager
async def serving(store: EmbeddedStore, folder: Path) -> AsyncIterator[Graph]:
    """Open a graph on a store, with the archive in the data folder."""
    graph = await Graph.open(store.url, Archive(f"sqlite:///{folder / 'archive.sqlite'}"), CHEAP)
    try:
        yield graph
    finally:
        await graph.close()


def damage(written: Written, seed: str, kind: str, folder: Path, *, at_end: bool = True) -> Change:
    """Damage the append-only file of a data folder, in its last 64 KiB or before. Return what was changed."""
    store = EmbeddedStore(folder)
    file = last_file(store.folder)
    assert file is not None
    size = len(written.content)
    random_ = random.Random(seed)  # noqa: S311 - a sample
    length = random_.choice((1, 2, 40, 512)) if at_end else 512
    first = random_.randrange(size - TAIL, size - length) if at_end else random_.randrange(size // 4, size // 2)
    if kind == "cut":
        os.truncate(file, first)
        return Change(first, size, is_cut=True)
    with file.open("r+b") as opened:
        opened.seek(size if kind == "zeros after the end" else first)
        opened.write(random_.randbytes(length) if kind == "garbled" else bytes(length))
    return Change(size, size) if kind == "zeros after the end" else Change(first, first + length - 1)


def copy_of(template: Path, folder: Path) -> Path:
    """Copy a data folder whose store was killed."""
    shutil.copytree(template, folder, ignore=shutil.ignore_patterns("*.sock", "socket", "pid"))
    return folder


async def lost(graph: Graph, written: Written, change: Change) -> list[str]:
    """Return what the undamaged bytes or the archive held, but the graph lacks."""
    await graph.worker(timedelta(0)).drain()
    await archive_all(graph)
    archived = {row.number for row in await graph.archive.range(0, MAX_NUMBER, MANY)}
    found = [
        f"event {number}"
        for number in written.events
        if number not in archived and (number in written.archived or change.spares(written.place_of_event(number)))
    ]
    live = {info.token_id for info in await graph.sessions.live_sessions(written.author)}
    ended = [session for session in written.sessions if session not in live]
    found += [f"session {session}" for session in ended if change.spares(written.place_of(session))]
    for key, post in written.requests.items():
        place = written.place_of(f"idempotency:{written.author}:{request_of(PostPublished, written.author, key)}\r\n")
        is_held = post in written.archived or change.spares(written.place_of_event(post))
        if is_held and change.spares(place):
            again = await graph.posts.publish(written.author, TEXT % key, idempotency_key=key)
            if again.id != post:
                found.append(f"idempotency key {key}")
    return found
