"""What must hold at rest, with everything projected and archived: every derived key says what the log says."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import redis

from graph import Graph, keys
from graph.model import MAX_NUMBER, Post
from graph.paging import Window
from tests.properties.model import World


@dataclass
class Rest:
    """A drained graph, beside the world that its log describes."""

    graph: Graph
    raw: redis.Redis
    world: World
    people: Sequence[int]

    async def check(self, *, records_are_free: bool) -> None:
        """Check everything; `records_are_free` if nothing died that might have left an archived post's record."""
        await asyncio.gather(*map(self._check_home, self.people))
        await self._check_lists()
        await self._check_archive(records_are_free=records_are_free)

    async def _check_home(self, viewer: int) -> None:
        """A home timeline is as it is defined: from its cache and without, from either end."""
        expected = self.world.home(viewer)
        for size, forward in ((3, True), (4, False), (2, True)):
            seen = await whole_timeline(self.graph, viewer, size, forward=forward)
            assert [post.id for post in seen] == expected
            if forward:
                await self.graph.timelines.wait_for_rebuilds()
        self.raw.unlink(keys.home(viewer))
        assert [post.id for post in await whole_timeline(self.graph, viewer, 7, forward=True)] == expected

    async def _check_lists(self) -> None:
        """Own timelines, both lists and all counts are those of the world, and both sides of a follow agree."""
        everything = Window(100, forward=True)
        own = await self.graph.timelines.user(self.people, everything)
        followers = await self.graph.follows.followers(self.people, everything)
        following = await self.graph.follows.following(self.people, everything)
        counts = await self.graph.users.counts(self.people)
        for i, person in enumerate(self.people):
            assert [post.id for post in own[i].items] == self.world.own(person)
            assert {(f.user, person) for f in followers[i].items} == {f for f in self.world.follows if f[1] == person}
            assert {(person, f.user) for f in following[i].items} == {f for f in self.world.follows if f[0] == person}
            assert {f.user: f.number for f in following[i].items}.items() <= self._versions(person).items()
            assert counts[i].followers == len(followers[i].items)
            assert counts[i].following == len(following[i].items)
            assert counts[i].posts == len(self.world.own(person))

    def _versions(self, person: int) -> dict[int, int]:
        """Read the version of each follow from the followee's side."""
        return {
            other: int(score)
            for other in self.people
            if (score := self.raw.zscore(keys.followers(other), str(person))) is not None
        }

    async def _check_archive(self, *, records_are_free: bool) -> None:
        """Every live post is hot or archived, none is both; the deleted have left both."""
        archive = self.graph.archive
        assert archive is not None
        archived = await asyncio.gather(*(archive.ids(person, 0, MAX_NUMBER) for person in self.people))
        for person, rows in zip(self.people, archived, strict=True):
            hot = [int(post) for post in self.raw.zrange(keys.posts(person), 0, -1) if post != "f"]
            floor = int(self.raw.zscore(keys.posts(person), "f") or 0)
            tuning = self.graph.tuning
            assert sorted([*hot, *rows]) == sorted(self.world.own(person))
            assert all(post > floor for post in hot)
            assert all(post <= floor for post in rows)
            assert len(hot) < tuning.hot_posts + tuning.archive_batch, "more posts are hot than should be"
            if records_are_free:
                assert not any(self.raw.exists(keys.post(post)) for post in rows), "an archived post's record is left"


async def whole_timeline(graph: Graph, viewer: int, size: int, *, forward: bool) -> list[Post]:
    """Read a home timeline to its end, page by page, newest first or oldest first; give it newest first."""
    posts: list[Post] = []
    window = Window(size, forward)
    while True:
        page = await graph.timelines.home(viewer, window)
        posts = [*posts, *page.items] if forward else [*page.items, *posts]
        if not (page.has_next if forward else page.has_previous):
            return posts
        assert len(page.items) == size, "a page is short though more follows"
        window = replace(window, high=posts[-1].id) if forward else replace(window, low=posts[0].id)
