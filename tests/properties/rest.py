"""Checks of a drained graph: every derived key agrees with the log."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import redis

from graph import Graph, keys
from graph.model import MAX_NUMBER, Post
from graph.paging import Window
from tests.properties.model import World
from tests.support.graph_worlds import counts_of


@dataclass
class Rest:
    """A drained graph, and the world that its log describes."""

    graph: Graph
    raw: redis.Redis
    world: World
    users: Sequence[int]

    async def check(self, *, records_are_free: bool) -> None:
        """Check everything. `records_are_free` is False if a crash may have left the records of archived posts."""
        await asyncio.gather(*map(self._check_home, self.users))
        await self._check_lists()
        await self._check_archive(records_are_free=records_are_free)

    async def _check_home(self, viewer: int) -> None:
        """Check a home timeline from the cache and without it, in both directions."""
        expected = self.world.home(viewer)
        for size, forward in ((3, True), (4, False), (2, True)):
            seen = await whole_timeline(self.graph, viewer, size, forward=forward)
            assert [post.id for post in seen] == expected
            if forward:
                await self.graph.timelines.wait_for_rebuilds()
        self.raw.unlink(keys.home(viewer))
        assert [post.id for post in await whole_timeline(self.graph, viewer, 7, forward=True)] == expected

    async def _check_lists(self) -> None:
        """Check user timelines, both sides of all follows, and all counts."""
        everything = Window(100, forward=True)
        own = await self.graph.timelines.user(self.users, everything)
        followers = await self.graph.follows.followers(self.users, everything)
        following = await self.graph.follows.following(self.users, everything)
        counts = await counts_of(self.graph, self.users)
        for i, user in enumerate(self.users):
            assert [post.id for post in own[i].items] == self.world.own(user)
            assert {(f.user, user) for f in followers[i].items} == {f for f in self.world.follows if f[1] == user}
            assert {(user, f.user) for f in following[i].items} == {f for f in self.world.follows if f[0] == user}
            assert {f.user: f.number for f in following[i].items}.items() <= self._versions(user).items()
            assert counts[i].followers == len(followers[i].items)
            assert counts[i].following == len(following[i].items)
            assert counts[i].posts == len(self.world.own(user))

    def _versions(self, user: int) -> dict[int, int]:
        """Return the version of each follow from the followee's side."""
        return {
            other: int(score)
            for other in self.users
            if (score := self.raw.zscore(keys.followers(other), str(user))) is not None
        }

    async def _check_archive(self, *, records_are_free: bool) -> None:
        """Check that every live post is either hot or archived, and that no deleted post is."""
        archive = self.graph.archive
        assert archive is not None
        archived = await asyncio.gather(*(archive.ids(user, 0, MAX_NUMBER) for user in self.users))
        for user, rows in zip(self.users, archived, strict=True):
            members: Any = self.raw.zrange(keys.posts(user), 0, -1)
            hot = [int(post) for post in members if post != "f"]
            floor = int(self.raw.zscore(keys.posts(user), "f") or 0)
            tuning = self.graph.tuning
            assert sorted([*hot, *rows]) == sorted(self.world.own(user))
            assert all(post > floor for post in hot)
            assert all(post <= floor for post in rows)
            assert len(hot) < tuning.hot_posts + tuning.archive_batch, "more posts are hot than should be"
            if records_are_free:
                assert not any(self.raw.exists(keys.post(post)) for post in rows), "an archived post's record is left"


async def whole_timeline(graph: Graph, viewer: int, size: int, *, forward: bool) -> list[Post]:
    """Return a home timeline, newest first, read page by page in one direction."""
    posts: list[Post] = []
    window = Window(size, forward)
    while True:
        page = await graph.timelines.home(viewer, window)
        posts = [*posts, *page.items] if forward else [*page.items, *posts]
        if not (page.has_next if forward else page.has_previous):
            return posts
        assert len(page.items) == size, "a page is short though more follows"
        window = replace(window, high=posts[-1].id) if forward else replace(window, low=posts[0].id)
