"""A small world with all kinds of data, ways to damage it at random, and checks of its state."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import hypothesis.strategies as st
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archive.archive import Archive
from graph.chunks import chunks
from graph.log.events import PasswordChanged, PostPublished
from graph.model import Location, Permission
from graph.repair.defects import Defect
from graph.repair.repair import Repair, RepairReport
from graph.repair.report import Difference
from graph.repair.scope import Scope
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import (
    befriend,
    cached,
    counts_of,
    crowd,
    home,
    home_upwards,
    ids,
    newest,
    own,
    posts,
)
from tests.support.graphs import CHEAP, archive_file, open_graph, remove_archive
from tests.support.raw import open_blocking
from tests.support.stores import HookedStore

TUNING = replace(CHEAP, hot_posts=3, hot_slack=1, push_limit=2, home_size=6)
DAY = 86_400


@asynccontextmanager
async def opened(url: str, archive: Archive | None = None) -> AsyncIterator[Graph]:
    """Open a graph on a store, by default with the archive that belongs to the store."""
    graph = await open_graph(url, TUNING, partial(HookedStore, single_slot=True), archive)
    try:
        yield graph
    finally:
        await graph.close()


class NotingRepair(Repair):
    """A repair that records all differences."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.store, graph.log, graph.archive, graph.binding, graph.commit, graph.tuning, timeout=0)
        self.noted: list[Difference] = []

    async def _correct(self, scope: Scope, differences: Sequence[Difference], *, correct: bool) -> list[bool]:
        self.noted += differences
        return await super()._correct(scope, differences, correct=correct)


async def kinds_found(graph: Graph, owners: Mapping[int, str], *, correct: bool) -> dict[str, set[Defect]]:
    """Return the kinds of differences by the owners of their subjects. All differences are corrected, or none is."""
    noting = NotingRepair(graph)
    report = await noting.run(correct=correct)
    assert report.clean == correct, (report.found, report.corrected, report.examples)
    found: dict[str, set[Defect]] = {name: set() for name in owners.values()}
    for difference in noting.noted:
        found[owners[difference.subject]].add(difference.defect)
    return found


async def check(graph: Graph) -> RepairReport:
    """Compare the store with the archive, without changes."""
    return await replace(graph.repair(), timeout=0).run(correct=False)


async def repair(graph: Graph) -> RepairReport:
    """Compare the store with the archive, and correct it."""
    return await replace(graph.repair(), timeout=0).run(correct=True)


@dataclass
class Snapshot:
    """The whole content of a store and of its archive."""

    keys: dict[bytes, tuple[int, bytes]]
    archive: bytes

    @classmethod
    def take(cls, url: str) -> "Snapshot":
        """Return a snapshot. The archive must be closed."""
        with open_blocking(url, decode_responses=False) as client:
            found: Any = {key: (max(0, client.pttl(key)), client.dump(key)) for key in client.scan_iter()}
        return cls(found, archive_file(url).read_bytes())

    def restore(self, url: str) -> None:
        """Replace the content of a store and of its archive. The archive must be closed."""
        remove_archive(url)
        archive_file(url).write_bytes(self.archive)
        with open_blocking(url, decode_responses=False) as client, client.pipeline(transaction=False) as pipeline:
            client.flushall()
            for key, (ttl, value) in self.keys.items():
                pipeline.restore(key, ttl, value)
            pipeline.execute()


@dataclass
class RepairWorld:
    """A world, its expected state, and direct access to its store and archive.

    alice follows bob, carol and star. bob and carol follow star. dave follows no one and has no home cache. star has
    too many followers for fan-out, and has the permission FIREHOSE; alice's was revoked. star has read the
    notifications. carol has a new name and has logged out of `session`. Some of bob's posts are archived. One archived
    post and one hot post were deleted.
    """

    graph: Graph
    raw: Redis
    prefix: str = "p"
    session: str = ""
    ids: dict[str, int] = field(default_factory=dict)
    follows: dict[int, set[int]] = field(default_factory=dict)
    posts: dict[int, list[int]] = field(default_factory=dict)
    deleted: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> int:
        """Return a user's id by name."""
        if name in self.__dict__.get("ids", ()):
            return self.ids[name]
        raise AttributeError(name)

    async def begin(self) -> None:
        """Create the users, with follows and posts."""
        graph, names = self.graph, ("alice", "bob", "carol", "dave", "star")
        self.ids = dict(zip(names, await crowd(graph, 5, self.prefix), strict=True))
        self.follows = {user: set() for user in self.ids.values()}
        alice, bob, carol, dave, star = self.ids.values()
        for follower, followees in ((alice, (bob, carol, star)), (bob, (star,)), (carol, (star,)), (dave, (bob, star))):
            await befriend(graph, follower, *followees)
            self.follows[follower] = {*followees}
        self.posts = {user: await posts(graph, user, "the first") for user in self.ids.values()}
        numbered = await graph.commit([PostPublished(bob, f"number {number}") for number in range(11)])
        self.posts[bob] += [event.number for event in numbered]
        self.posts[bob].append((await graph.posts.publish(bob, "where", platform="web", location=Location(1, -2))).id)

    async def change(self) -> None:
        """Archive the existing events, then make every kind of change."""
        graph, (alice, bob, carol, dave, star) = self.graph, self.ids.values()
        await cached(graph, alice, bob, carol)
        for user in (star, carol, dave):
            self.posts[user] += await posts(graph, user, "the second")
        for post in (self.posts[bob][1], self.posts[bob][-2]):
            await graph.posts.delete(bob, post)
            self.posts[bob].remove(post)
            self.deleted.append(post)
        await graph.follows.unfollow(dave, [bob, star])
        self.follows[dave] = set()
        for user in (alice, star):
            await graph.users.grant(user, Permission.FIREHOSE)
        await graph.users.revoke(alice, Permission.FIREHOSE)
        await graph.users.update_profile(carol, name="Carol")
        await graph.commit([PasswordChanged(carol, self.login(2), "nonce")])
        await graph.notifications.mark_read(star, await graph.log.last())
        self.session = (await graph.sessions.start(carol)).id
        await graph.sessions.end(carol)

    def login(self, place: int) -> str:
        """Return the login of a user by index."""
        return f"{self.prefix}{place}"

    def numbers(self) -> list[int]:
        """Return the ids of all users and posts, and the unused number."""
        published = [post for some in self.posts.values() for post in some]
        return [*self.ids.values(), *published, *self.deleted, self.unused]

    @property
    def unused(self) -> int:
        """A number that no event has: one millisecond does not have so many events."""
        return self.alice - 2000

    def copy(self, graph: Graph, raw: Redis) -> "RepairWorld":
        """Return the same world in another store."""
        follows = {user: {*followees} for user, followees in self.follows.items()}
        posts = {user: [*ids] for user, ids in self.posts.items()}
        return RepairWorld(graph, raw, self.prefix, self.session, self.ids, follows, posts, [*self.deleted])

    async def drain(self) -> None:
        """Run the worker and the archiver."""
        await self.graph.worker().drain()
        await self.graph.archiver.work()

    async def groups(self, user: int) -> list[str]:
        """Return the groups in a user's list of notifications."""
        return [str(group) for group in await self.raw.zrange(keys.notifications(user), 0, -1) if group != "f"]

    async def hot(self) -> list[int]:
        """Return bob's hot posts."""
        return [int(str(post)) for post in await self.raw.zrange(keys.posts(self.bob), 0, -1) if post != "f"]

    def home(self, viewer: int) -> list[int]:
        """Return the expected home timeline."""
        return sorted((p for author in {viewer, *self.follows[viewer]} for p in self.posts[author]), reverse=True)

    def sql(self, statement: str, *values: Any) -> list[Any]:
        """Execute a statement in the archive's database, and return its rows."""
        with sqlite3.connect(archive_file(self.graph.store.url)) as connection:
            rows = list(connection.execute(statement, values))
        connection.close()
        return rows

    def content(self) -> tuple[dict[bytes, Any], list[str]]:
        """Return the whole content of the store and the archive, without the lease of the archiver, which expires."""
        with open_blocking(self.graph.store.url, decode_responses=False) as client:
            found: dict[bytes, Any] = {key: client.dump(key) for key in client.scan_iter(count=1000)}
        found.pop(keys.ARCHIVER.encode(), None)
        with sqlite3.connect(archive_file(self.graph.store.url)) as connection:
            rows = list(connection.iterdump())
        connection.close()
        return found, rows

    async def check_pages(self) -> None:
        """Check all users' pages, lists and counts, before and after caches are rebuilt."""
        graph, all_ = self.graph, list(self.ids.values())
        for read, size in ((home, 8), (home_upwards, 100)):
            for viewer in all_:
                seen = await read(graph, viewer, size)
                assert seen == self.home(viewer), (viewer, size)
            await graph.timelines.wait_for_rebuilds()
        counts = await counts_of(graph, all_)
        followers = await graph.follows.followers(SYSTEM, all_, newest(100))
        for user, count, fans in zip(all_, counts, followers, strict=True):
            assert await own(graph, user) == self.posts[user][::-1]
            expected = {follower for follower, followees in self.follows.items() if user in followees}
            assert {item.user for item in fans.items} == expected
            assert (count.posts, count.followers) == (len(self.posts[user]), len(fans.items))
            assert count.following == len(self.follows[user])
            assert await graph.users.permissions(user) == ({Permission.FIREHOSE} if user == self.star else set())


async def worlds(graph: Graph, raw: Redis, count: int) -> list[RepairWorld]:
    """Create several independent worlds in one store. All homes were read."""
    found = [RepairWorld(graph, raw, f"{place}p") for place in range(count)]
    for step in (RepairWorld.begin, RepairWorld.change):
        for some in chunks(found, 20):
            await asyncio.gather(*map(step, some))
        await found[0].drain()
    for world in found:
        await asyncio.gather(*(home(graph, user) for user in world.ids.values()))
    await graph.timelines.wait_for_rebuilds()
    return found


def random_damages() -> st.SearchStrategy[list[tuple[str, int, int]]]:
    """Return a strategy for lists of damages: a kind, and two numbers that select a key, a member or a post."""
    kinds = ["drop member", "add member", "move member", "delete key", "drop field", "set field", "count", "drop row"]
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 200), st.integers(0, 200)), min_size=1, max_size=6)


async def apply_random_damage(world: RepairWorld, damage: str, first: int, second: int) -> None:
    """Apply one damage to the store, or remove the row of a hot post from the archive."""
    raw = world.raw
    sets = sorted(
        [key async for key in raw.scan_iter() if await raw.type(key) == "zset" and not key.startswith("{log}")]
    )
    hashes = sorted([key for name in ("post", "user", "login") async for key in raw.scan_iter(f"{name}:*")])
    numbers = sorted([*world.ids.values(), *(post for posts in world.posts.values() for post in posts), *world.deleted])
    name, number = sets[first % len(sets)], numbers[second % len(numbers)]
    members = [str(member) for member in await raw.zrange(name, 0, -1)]
    match damage:
        case "drop member" if members:
            await raw.zrem(name, members[second % len(members)])
        case "add member":
            await raw.zadd(name, {str(number): number})
        case "move member" if members:
            await raw.zadd(name, {members[second % len(members)]: numbers[second % 7]})
        case "delete key":
            await raw.delete([*sets, *hashes][(first * 7 + second) % len([*sets, *hashes])])
        case "drop field" | "set field":
            name = hashes[first % len(hashes)]
            field = sorted(await raw.hkeys(name))[second % len(await raw.hkeys(name))]
            await (raw.hdel(name, field) if damage == "drop field" else raw.hset(name, field, numbers[second % 7]))
        case "count":
            await raw.set(keys.cold([*world.ids.values()][first % len(world.ids)]), second % 20)
        case "drop row":
            hot = await world.hot()
            world.sql("DELETE FROM events WHERE number = ?", hot[first % len(hot)] if hot else 0)
        case _:
            pass


async def check_consistency(world: RepairWorld) -> None:
    """Check that all reads agree with each other, with and without caches."""
    graph, users = world.graph, list(world.ids.values())
    own = dict(zip(users, await graph.timelines.user(SYSTEM, users, newest(100)), strict=True))
    followers = dict(zip(users, await graph.follows.followers(SYSTEM, users, newest(100)), strict=True))
    following = {user: await graph.follows.followed_by(user) for user in users}
    for user, counts in zip(users, await counts_of(graph, users), strict=True):
        assert {other: number for other, n in following.items() for who, number in n.items() if who == user} == {
            follow.user: follow.number for follow in followers[user].items if follow.user in users
        }
        assert counts.posts == len(own[user].items)
        assert not {*ids(own[user].items)} & {*world.deleted}
        expected = sorted(
            {id_ for author in {user, *following[user]} & {*users} for id_ in ids(own[author].items)}, reverse=True
        )
        assert await home(graph, user) == expected
        await graph.timelines.wait_for_rebuilds()
        assert await home(graph, user) == expected
