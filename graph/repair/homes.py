"""Comparison of home caches: above its floor, a cache holds exactly the posts of its viewer's authors.

Caches that are being rebuilt are skipped. The correction deletes the cache, which is always safe: the next read merges
the authors' timelines and rebuilds the cache.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from graph import keys
from graph.home.delivery import PULL
from graph.home.merge import merge_hot
from graph.model import Post
from graph.paging import Window
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import ATTEMPTS, Scope, live_post, pattern
from graph.store.commands import Command, script

VIEWERS_AT_ONCE = 50
AUTHORS_PER_COMMAND = 1000
EXTRA_POSTS = 50


@dataclass(frozen=True, slots=True)
class Cache:
    """A home cache up to the watermark, and its viewer's followees with the numbers of the follows.

    `malformed` is an invalid member, `f` if the floor or the expiry is missing, or '' if the cache is well-formed.
    """

    viewer: int
    floor: int
    posts: frozenset[int]
    marked: frozenset[int]
    following: Mapping[int, int]
    malformed: str = ""

    @property
    def authors(self) -> frozenset[int]:
        """The authors whose posts may be in the cache."""
        return frozenset((self.viewer, *self.following))


@dataclass(frozen=True, slots=True)
class CacheProblem:
    """A problem with a cache: a surplus member if `surplus` is True, otherwise a missing member."""

    kind: Kind
    surplus: bool
    member: str
    text: str


class HomeCaches:
    """Compares all home caches with the timelines of their authors.

    Three round trips per 50 caches, and one query per cache that reaches below an archive floor. Differences take two
    more round trips.
    """

    part = Part.HOMES
    key_pattern = pattern(keys.home)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the viewers of all caches."""
        return self._scope.owners(keys.home, VIEWERS_AT_ONCE)

    async def compare(self, viewers: Sequence[int]) -> list[Difference[int]]:
        """Return the wrong caches. A cache that changes during the comparison is compared again, up to three times."""
        found: list[Difference[int]] = []
        wanted = list(dict.fromkeys(viewers))
        for _ in range(ATTEMPTS):
            caches = await self._read(wanted)
            problems = await self._problems(caches)
            again = {cache.viewer: cache for cache in await self._read(list(problems))}
            before = {cache.viewer: cache for cache in caches}
            stable = [viewer for viewer in problems if again.get(viewer) == before[viewer]]
            found += [self._difference(viewer, problems[viewer]) for viewer in stable]
            wanted = [viewer for viewer in again if again[viewer] != before[viewer]]
        return found

    async def _read(self, viewers: Sequence[int]) -> list[Cache]:
        """Return the caches of these viewers, except those that are being rebuilt."""
        commands: list[Command] = []
        for viewer in viewers:
            commands += [
                ("ZRANGE", keys.home(viewer), 0, -1, "WITHSCORES"),
                ("TTL", keys.home(viewer)),
                ("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES"),
            ]
        replies = await self._scope.send(commands)
        rows = zip(viewers, replies[::3], replies[1::3], replies[2::3], strict=True)
        return [
            as_cache(viewer, home, ttl, following, self._scope.watermark)
            for viewer, home, ttl, following in rows
            if home and home[-1][1] != float("inf")
        ]

    async def _problems(self, caches: Sequence[Cache]) -> dict[int, CacheProblem]:
        """Return one problem of each wrong cache."""
        problems = {cache.viewer: _malformed(cache.malformed) for cache in caches if cache.malformed}
        well_formed = [cache for cache in caches if not cache.malformed]
        pulled = await self._pulled(
            {author for cache in well_formed for author in cache.following if author not in cache.marked}
        )
        for cache in well_formed:
            unmarked = sorted(pulled.intersection(cache.following) - cache.marked)
            if unfollowed := sorted(cache.marked - cache.authors):
                text = f"has a mark for user {unfollowed[0]}, who is not followed"
                problems[cache.viewer] = CacheProblem(Kind.CACHE_AUTHOR_NOT_FOLLOWED, True, f"a{unfollowed[0]}", text)
            elif unmarked:
                text = f"has no mark for user {unmarked[0]}, whose posts are not pushed"
                problems[cache.viewer] = CacheProblem(Kind.CACHE_MARK_MISSING, False, f"a{unmarked[0]}", text)
        rest = [cache for cache in well_formed if cache.viewer not in problems]
        return problems | await self._wrong_posts(rest)

    async def _pulled(self, authors: Iterable[int]) -> set[int]:
        """Return the authors whose posts are not pushed. One command per 1,000 authors on one server."""
        groups = list(self._scope.store.together(authors, keys.delivery, AUTHORS_PER_COMMAND))
        replies = await self._scope.send([("MGET", *map(keys.delivery, group)) for group in groups])
        return {
            author
            for group, modes in zip(groups, replies, strict=True)
            for author, mode in zip(group, modes, strict=True)
            if mode == PULL
        }

    async def _wrong_posts(self, caches: Sequence[Cache]) -> dict[int, CacheProblem]:
        """Compare caches with the authors' timelines."""
        windows = [
            Window(len(cache.posts) + EXTRA_POSTS, forward=True, low=cache.floor, high=self._scope.watermark + 1)
            for cache in caches
        ]
        reads = [(cache.authors - cache.marked, window) for cache, window in zip(caches, windows, strict=True)]
        different: dict[int, tuple[Cache, set[int], set[int]]] = {}
        for cache, window, merged in zip(caches, windows, await merge_hot(self._scope.store, reads), strict=True):
            posts = {*merged.posts, *await self._archived(merged.floors, window)}
            lowest = min(posts) if len(posts) >= window.count else 0
            extra = {post for post in cache.posts - posts if post >= lowest}
            if posts != cache.posts:
                different[cache.viewer] = cache, posts - cache.posts, extra
        live = await self._live_posts({post for _, missing, extra in different.values() for post in (*missing, *extra)})
        problems = {viewer: wrong_post(*posts, live) for viewer, posts in different.items()}
        return {viewer: problem for viewer, problem in problems.items() if problem is not None}

    async def _archived(self, floors: Mapping[int, int], window: Window) -> list[int]:
        """Return the archived posts of a window, for caches that reach below the archive floors of some authors."""
        archive, within = self._scope.archive, [author for author in floors if floors[author] > window.low]
        if archive is None or not within:
            return []
        high = min(window.high, max(floors.values()) + 1)
        rows = await archive.merge(within, Window(window.count, forward=True, low=window.low, high=high))
        return [row.id for row in rows]

    async def _live_posts(self, posts: Collection[int]) -> dict[int, Post]:
        """Return those of the posts that are not deleted, from the store or the archive."""
        wanted = sorted(posts)
        records = await self._scope.records(wanted)
        found = {id_: post for id_, record in records.items() if (post := live_post(record)) is not None}
        cold = [post for post in wanted if not records[post]]
        return found | dict((await self._scope.rows(cold) if cold else None) or {})

    def _difference(self, viewer: int, problem: CacheProblem) -> Difference[int]:
        text = f"the home cache of user {viewer} {problem.text}"
        return Difference(problem.kind, viewer, text, partial(self._delete, viewer, problem))

    async def _delete(self, viewer: int, problem: CacheProblem) -> bool:
        found = "holds" if problem.surplus else "lacks"
        call = script("repair_forget").call([keys.home(viewer)], problem.member, found)
        await self._scope.send([call])
        return True


def as_cache(
    viewer: int,
    home: Sequence[tuple[str, float]],
    ttl: int,
    following: Sequence[tuple[str, float]],
    watermark: int,
) -> Cache:
    """Return the cache that these replies describe, with posts up to the watermark."""
    floor = next((int(score) for member, score in home if member == "f"), None)
    marked = {int(member[1:]) for member, score in home if score == -1 and member[1:].isdecimal()}
    posts = {int(member): score for member, score in home if member.isdecimal()}
    misplaced = [str(post) for post, score in posts.items() if post != score]
    misplaced += [m for m, s in home if not m.isdecimal() and m != "f" and not (m[0] == "a" and s == -1)]
    return Cache(
        viewer,
        floor or 0,
        frozenset(post for post in posts if (floor or 0) < post <= watermark),
        frozenset(marked),
        {int(author): int(number) for author, number in following if author.isdecimal()},
        "f" if floor is None or ttl == -1 else misplaced[0] if misplaced else "",
    )


def _malformed(member: str) -> CacheProblem:
    if member == "f":
        return CacheProblem(Kind.CACHE_MALFORMED, False, member, "has no floor or does not expire")
    return CacheProblem(Kind.CACHE_MALFORMED, True, member, f"has the wrong score for member {member}")


def wrong_post(
    cache: Cache, missing: Iterable[int], extra: Iterable[int], live: Mapping[int, Post]
) -> CacheProblem | None:
    """Return a problem with a post that only the timelines or only the cache holds. Deleted posts are ignored."""
    for post in sorted(missing):
        if post > cache.floor and post in live and live[post].author in cache.authors:
            text = f"does not hold post {post} by user {live[post].author}"
            return CacheProblem(Kind.CACHE_POST_MISSING, False, str(post), text)
    for post in sorted(extra):
        if post in live and live[post].author not in cache.authors:
            text = f"holds post {post} by user {live[post].author}, who is not followed"
            return CacheProblem(Kind.CACHE_AUTHOR_NOT_FOLLOWED, True, str(post), text)
    return None
