"""The erasure of a user with many followers, posts and likes while workers are killed."""

import asyncio
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.log.events import Event, EventBody, Followed, Liked, PostPublished, UserCreated
from graph.model import number_at
from graph.visibility.views import SYSTEM
from server.seeding.load import Source, load
from tests.graph.erasure.erasing import LOGIN, SECRET, delete, left, of_user
from tests.server.cli.test_commands import CLEAN, FANLINE
from tests.support.graph_worlds import Counts, Open, counts_of, newest, own
from tests.support.graphs import environment_of

pytestmark = pytest.mark.slow

WRITERS = 20


class Sizes(NamedTuple):
    """The numbers of the user's followers, posts, and likes of posts by the writers, whom the user follows."""

    followers: int
    posts: int
    likes: int


SMALL, LARGE = Sizes(300, 100, 200), Sizes(100_000, 10_000, 50_000)


def bodies(base: int, sizes: Sizes) -> Iterator[EventBody]:
    """Yield the events. The first event has the number `base`. The user signs up first, then the writers."""
    yield UserCreated(LOGIN, f"{SECRET} name", LOGIN)
    for n in range(WRITERS):
        yield UserCreated(f"writer{n}", f"Writer {n}", f"writer{n}")
    for n in range(sizes.followers):
        yield UserCreated(f"fan{n}", f"Fan {n}", f"fan{n}")
    writers = range(base + 1, base + 1 + WRITERS)
    fans = range(writers.stop, writers.stop + sizes.followers)
    for fan in fans:
        yield Followed(fan, base)
    for writer in writers:
        yield Followed(base, writer)
        yield Followed(fans[0], writer)
    first = fans.stop + sizes.followers + 2 * WRITERS
    for n in range(sizes.likes):
        yield PostPublished(writers[n % WRITERS], f"post {n}")
    for n in range(sizes.posts):
        yield PostPublished(base, f"{SECRET} {n}")
    for n in range(sizes.likes):
        yield Liked(base, first + n, writers[n % WRITERS])
        if n % 10 == 0:
            yield Liked(fans[0], first + n, writers[n % WRITERS])


def events(base: datetime, sizes: Sizes) -> Iterator[Event]:
    """Yield the events with consecutive numbers that end before a time."""
    total = sum(1 for _ in bodies(0, sizes))
    first = number_at(base) - total
    yield from (Event(number, body) for number, body in enumerate(bodies(first, sizes), first))


async def erase_with_kills(raw: Redis, environment: dict[str, str], events: int, limit: int) -> int:
    """Run workers until no user waits for erasure. Kill the first ones as the log grows. Return the number of kills."""
    kills = 0
    while await raw.exists(keys.ERASING):
        worker = await asyncio.create_subprocess_exec(*FANLINE, "worker", env=CLEAN | environment)
        added = await added_events(raw)
        while await raw.exists(keys.ERASING) and (  # noqa: ASYNC110 - the store sends no notification
            kills == limit or await added_events(raw) < added + events
        ):
            await asyncio.sleep(0.05)
        kills += await raw.exists(keys.ERASING)
        worker.kill()
        await worker.wait()
    return kills


async def added_events(raw: Redis) -> int:
    """Return the number of events that were ever added to the log."""
    return int((await raw.xinfo_stream(keys.LOG))["entries-added"])


@pytest.mark.timeout(1800)
async def test_an_account_is_invisible_at_once_and_then_erased(
    another: Open, raw: Redis, store_url: str, tmp_path: Path, long_profile: bool
) -> None:
    """Every worker is killed after some seconds. All counts are exact, and no text of the user is left."""
    sizes = LARGE if long_profile else SMALL
    graph: Graph = await another()
    await load(graph, Source("erasure", "1", lambda _: 0, partial(events, sizes=sizes)))
    logins = [LOGIN, "fan0", f"fan{sizes.followers - 1}", *(f"writer{n}" for n in range(WRITERS))]
    user, fan, last, *writers = [id_ or 0 for id_ in await graph.users.ids_of_logins(logins)]
    assert await counts_of(graph, [user]) == [Counts(sizes.followers, WRITERS, sizes.posts)]

    await delete(graph, user)
    assert await graph.users.get_many([user]) == [None]
    assert user not in {post.author for post in (await graph.timelines.home(fan, newest(100))).items}

    started = time.monotonic()
    step = sum(sizes) // 8
    kills = await erase_with_kills(raw, environment_of(store_url, tmp_path), step, 5 if long_profile else 1)
    print(f"{sizes}: erased in {time.monotonic() - started:.0f} s, {kills} workers killed")
    assert kills
    await graph.worker().drain()
    await graph.archiver.work()
    await graph.housekeeping.tidy()

    assert list(await of_user(raw, user)) == [keys.user(user)]
    assert await left(raw, SECRET) == []
    posts = sizes.likes // WRITERS
    expected = [Counts(0, 0, 0), Counts(0, WRITERS, 0), Counts(0, 0, 0), *[Counts(1, 0, posts)] * WRITERS]
    assert await counts_of(graph, [user, fan, last, *writers]) == expected
    for writer, likes in zip(writers[:2], (1, 0), strict=True):
        found = await graph.posts.get_many(SYSTEM, await own(graph, writer))
        assert [post and post.likes for post in found] == [likes] * posts
    assert not (await graph.repair().run(correct=False)).examples
    assert SECRET not in repr([line async for line in graph.export().lines(fan)])
    await graph.archive.close()
    path = Path(str(graph.archive.database.url.database))
    assert SECRET.encode() not in b"".join(file.read_bytes().lower() for file in path.parent.glob(f"{path.name}*"))
