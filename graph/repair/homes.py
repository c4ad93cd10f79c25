"""Home caches: a settled cache holds what its viewer's authors published above its floor, and nothing else.

A wrong cache is forgotten, which is always safe: the next read merges the authors' timelines and builds it anew.
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
from graph.repair.scope import ATTEMPTS, Scope, living, pattern
from graph.store.commands import Command, script

VIEWERS_AT_ONCE = 50
AUTHORS_PER_COMMAND = 1000
SPARE = 50


@dataclass(frozen=True, slots=True)
class Cache:
    """A settled cache up to the watermark, and whom its viewer follows since when.

    `broken` names a member that cannot be right: '' if there is none, `f` if the floor is missing or nothing expires.
    """

    viewer: int
    floor: int
    posts: frozenset[int]
    marked: frozenset[int]
    following: Mapping[int, int]
    broken: str = ""

    @property
    def authors(self) -> frozenset[int]:
        """Whose posts may be in the cache."""
        return frozenset((self.viewer, *self.following))


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a cache: it holds, or lacks, this member."""

    kind: Kind
    holds: bool
    member: str
    what: str


class Homes:
    """All home caches.

    For 50 caches three round trips, and a query for each one that reaches below an archive floor; two round trips
    more where something differs.
    """

    part = Part.HOMES
    counts = pattern(keys.home)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[int]]:
        """Go through all caches."""
        return self._scope.owners(keys.home, VIEWERS_AT_ONCE)

    async def compare(self, viewers: Sequence[int]) -> list[Difference[int]]:
        """Find the flawed caches; one that changes while it is checked is checked again, up to three times."""
        found: list[Difference[int]] = []
        wanted = list(dict.fromkeys(viewers))
        for _ in range(ATTEMPTS):
            caches = await self._read(wanted)
            flaws = await self._flaws(caches)
            again = {cache.viewer: cache for cache in await self._read(list(flaws))}
            before = {cache.viewer: cache for cache in caches}
            stable = [viewer for viewer in flaws if again.get(viewer) == before[viewer]]
            found += [self._difference(viewer, flaws[viewer]) for viewer in stable]
            wanted = [viewer for viewer in again if again[viewer] != before[viewer]]
        return found

    async def _read(self, viewers: Sequence[int]) -> list[Cache]:
        """Read the settled ones of some caches."""
        commands: list[Command] = []
        for viewer in viewers:
            commands += [
                ("ZRANGE", keys.home(viewer), 0, -1, "WITHSCORES"),
                ("TTL", keys.home(viewer)),
                ("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES"),
            ]
        replies = await self._scope.ask(commands)
        rows = zip(viewers, replies[::3], replies[1::3], replies[2::3], strict=True)
        return [
            as_cache(viewer, home, ttl, following, self._scope.watermark)
            for viewer, home, ttl, following in rows
            if home and home[-1][1] != float("inf")
        ]

    async def _flaws(self, caches: Sequence[Cache]) -> dict[int, Flaw]:
        """Find one flaw of each flawed cache."""
        flaws = {
            cache.viewer: Flaw(Kind.CACHE_BROKEN, cache.broken != "f", cache.broken, "")
            for cache in caches
            if cache.broken
        }
        sound = [cache for cache in caches if not cache.broken]
        pulled = await self._pulled(
            {author for cache in sound for author in cache.following if author not in cache.marked}
        )
        for cache in sound:
            unmarked = sorted(pulled.intersection(cache.following) - cache.marked)
            if strangers := sorted(cache.marked - cache.authors):
                what = f"merges user {strangers[0]}, who is not followed"
                flaws[cache.viewer] = Flaw(Kind.CACHE_STRANGER, True, f"a{strangers[0]}", what)
            elif unmarked:
                what = f"does not merge user {unmarked[0]}, whose posts fan-out leaves out"
                flaws[cache.viewer] = Flaw(Kind.CACHE_UNMARKED, False, f"a{unmarked[0]}", what)
        rest = [cache for cache in sound if cache.viewer not in flaws]
        return flaws | await self._wrong_posts(rest)

    async def _pulled(self, authors: Iterable[int]) -> set[int]:
        """Find out which authors fan-out leaves out. One command for a thousand on one server."""
        groups = list(self._scope.store.together(authors, keys.delivery, AUTHORS_PER_COMMAND))
        replies = await self._scope.ask([("MGET", *map(keys.delivery, group)) for group in groups])
        return {
            author
            for group, modes in zip(groups, replies, strict=True)
            for author, mode in zip(group, modes, strict=True)
            if mode == PULL
        }

    async def _wrong_posts(self, caches: Sequence[Cache]) -> dict[int, Flaw]:
        """Compare caches with the authors' timelines, and look at the posts that only one of the two has."""
        windows = [
            Window(len(cache.posts) + SPARE, forward=True, low=cache.floor, high=self._scope.watermark + 1)
            for cache in caches
        ]
        reads = [(cache.authors - cache.marked, window) for cache, window in zip(caches, windows, strict=True)]
        unlike: dict[int, tuple[Cache, set[int], set[int]]] = {}
        for cache, window, merged in zip(caches, windows, await merge_hot(self._scope.store, reads), strict=True):
            posts = {*merged.posts, *await self._archived(merged.floors, window)}
            lowest = min(posts) if len(posts) >= window.count else 0
            extra = {post for post in cache.posts - posts if post >= lowest}
            if posts != cache.posts:
                unlike[cache.viewer] = cache, posts - cache.posts, extra
        living = await self._living({post for _, lacks, extra in unlike.values() for post in (*lacks, *extra)})
        flaws = {viewer: wrong_post(*places, living) for viewer, places in unlike.items()}
        return {viewer: flaw for viewer, flaw in flaws.items() if flaw is not None}

    async def _archived(self, floors: Mapping[int, int], window: Window) -> list[int]:
        """Give the archived posts that belong into a cache with a floor below those of some archived timelines."""
        archive, within = self._scope.archive, [author for author in floors if floors[author] > window.low]
        if archive is None or not within:
            return []
        high = min(window.high, max(floors.values()) + 1)
        rows = await archive.merge(within, Window(window.count, forward=True, low=window.low, high=high))
        return [row.id for row in rows]

    async def _living(self, posts: Collection[int]) -> dict[int, Post]:
        """Look up those posts that live, wherever they are."""
        wanted = sorted(posts)
        records = await self._scope.records(wanted)
        found = {post: alive for post, row in records.items() if (alive := living(row)) is not None}
        cold = [post for post in wanted if not records[post]]
        return found | dict((await self._scope.rows(cold) if cold else None) or {})

    def _difference(self, viewer: int, flaw: Flaw) -> Difference[int]:
        what = f"the home cache of user {viewer} {flaw.what or f'is wrong in the member {flaw.member}'}"
        return Difference(flaw.kind, viewer, what, partial(self._forget, viewer, flaw))

    async def _forget(self, viewer: int, flaw: Flaw) -> bool:
        call = script("repair_forget").call([keys.home(viewer)], flaw.member, "holds" if flaw.holds else "lacks")
        await self._scope.ask([call])
        return True


def as_cache(
    viewer: int,
    home: Sequence[tuple[str, float]],
    ttl: int,
    following: Sequence[tuple[str, float]],
    watermark: int,
) -> Cache:
    """Read a cache: its floor, posts up to the watermark, and marks."""
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


def wrong_post(cache: Cache, lacks: Iterable[int], extra: Iterable[int], living: Mapping[int, Post]) -> Flaw | None:
    """Judge the posts that only the timelines, or only the cache, have. Deleted ones may be in either."""
    for post in sorted(lacks):
        if post > cache.floor and post in living and living[post].author in cache.authors:
            what = f"lacks post {post} by user {living[post].author}"
            return Flaw(Kind.CACHE_LACKS, False, str(post), what)
    for post in sorted(extra):
        if post in living and living[post].author not in cache.authors:
            what = f"holds post {post} by user {living[post].author}, who is not followed"
            return Flaw(Kind.CACHE_STRANGER, True, str(post), what)
    return None
