"""Comparison of home caches: above its floor, a cache holds exactly the posts of its viewer's authors.

Caches that are being rebuilt are skipped. The correction deletes the cache, which is always safe: the next read merges
the authors' timelines and rebuilds the cache.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graph import keys
from graph.home.delivery import PULL
from graph.home.merge import merge_hot
from graph.paging import Window
from graph.repair import defects
from graph.repair.posts import readable
from graph.repair.report import Difference
from graph.repair.scope import Comparison
from graph.store.commands import Command, script

AUTHORS_PER_COMMAND = 1000
EXTRA_POSTS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Cache:
    """A home cache up to the watermark, and the authors whose posts may be in it.

    `authors` are the viewer and the followees who are not muted.
    `malformed` is an invalid member, `f` if the floor or the expiry is missing, or '' if the cache is well-formed.
    """

    viewer: int
    floor: int
    posts: frozenset[int]
    marked: frozenset[int]
    authors: frozenset[int]
    malformed: str = ""

    def holds(self, member: str, problem: str) -> Difference:
        """Return a difference that reports a member that the cache must not hold."""
        return self._difference(member, f"holds {member}, {problem}", "holds")

    def lacks(self, member: str, problem: str) -> Difference:
        """Return a difference that reports a member that is missing from the cache."""
        return self._difference(member, f"lacks {member}, {problem}", "lacks")

    def _difference(self, member: str, problem: str, found: str) -> Difference:
        command = script("repair_forget").call([keys.home(self.viewer)], member, found)
        return Difference(
            defects.CACHE_WRONG, self.viewer, member, f"the cache of user {self.viewer} {problem}", [command]
        )


class HomeComparison(Comparison):
    """Compares all home caches with the timelines of their authors.

    Three round trips per 50 caches, and one query per cache that reaches below an archive floor. Differences take
    another round trip and a query.
    """

    part = defects.HOMES
    key = staticmethod(keys.home)
    of_users = False
    owners_at_once = 50

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return one difference for each wrong cache."""
        found: list[Difference] = []
        rest: list[Cache] = []
        caches = await self._read(subjects)
        pulled = await self._pulled({author for cache in caches for author in cache.authors - cache.marked})
        for cache in caches:
            unmarked = sorted(pulled & cache.authors - cache.marked - {cache.viewer})
            if cache.malformed == "f":
                found.append(cache.lacks("f", "the floor, or does not expire"))
            elif cache.malformed:
                found.append(cache.holds(cache.malformed, "with a wrong score"))
            elif unfollowed := sorted(cache.marked - cache.authors):
                found.append(cache.holds(f"a{unfollowed[0]}", "the mark of a user who is not followed"))
            elif unmarked:
                found.append(cache.lacks(f"a{unmarked[0]}", "the mark of a user whose posts are not pushed"))
            else:
                rest.append(cache)
        return found + await self._wrong_posts(rest)

    async def _read(self, viewers: Sequence[int]) -> list[Cache]:
        """Return the caches of these viewers, except those that are being rebuilt."""
        commands: list[Command] = []
        for viewer in viewers:
            home = keys.home(viewer)
            commands += [
                ("ZRANGE", home, 0, -1, "WITHSCORES"),
                ("TTL", home),
                ("ZRANGE", keys.following(viewer), 0, -1),
                ("ZRANGE", keys.muting(viewer), 0, -1),
            ]
        replies = await self.scope.send(commands)
        rows = zip(viewers, replies[::4], replies[1::4], replies[2::4], replies[3::4], strict=True)
        return [as_cache(*row, self.scope.up_to) for row in rows if row[1] and row[1][-1][1] != float("inf")]

    async def _pulled(self, authors: Iterable[int]) -> set[int]:
        """Return the authors whose posts are not pushed. One command per 1,000 authors on one server."""
        groups = list(self.scope.store.together(authors, keys.delivery, AUTHORS_PER_COMMAND))
        replies = await self.scope.send([("MGET", *map(keys.delivery, group)) for group in groups])
        modes = (
            (a, mode)
            for group, reply in zip(groups, replies, strict=True)
            for a, mode in zip(group, reply, strict=True)
        )
        return {author for author, mode in modes if mode and mode.startswith(PULL)}

    async def _wrong_posts(self, caches: Sequence[Cache]) -> list[Difference]:
        """Return a difference for each cache that differs from its authors' timelines. Deleted posts are ignored."""
        high = self.scope.up_to + 1
        windows = [Window(len(cache.posts) + EXTRA_POSTS, forward=True, low=cache.floor, high=high) for cache in caches]
        reads = [(cache.authors - cache.marked, window) for cache, window in zip(caches, windows, strict=True)]
        different: list[tuple[Cache, list[int], list[int]]] = []
        for cache, window, merged in zip(caches, windows, await merge_hot(self.scope.store, reads), strict=True):
            posts = {*merged.posts, *await self._archived(merged.floors, window)}
            lowest = min(posts) if len(posts) >= window.count else 0
            missing, surplus = sorted(posts - cache.posts), sorted(p for p in cache.posts - posts if p >= lowest)
            different.append((cache, missing, surplus))
        authors = await self._authors([post for _, *both in different for posts in both for post in posts])
        found = []
        for cache, missing, surplus in different:
            lacking = [post for post in missing if post > cache.floor and authors.get(post) in cache.authors]
            foreign = [post for post in surplus if post in authors and authors[post] not in cache.authors]
            if lacking:
                found.append(cache.lacks(str(lacking[0]), f"a post by user {authors[lacking[0]]}"))
            elif foreign:
                found.append(cache.holds(str(foreign[0]), f"a post by user {authors[foreign[0]]}, who is not followed"))
        return found

    async def _archived(self, floors: Mapping[int, int], window: Window) -> list[int]:
        """Return the archived posts in a cache's window, if the window reaches below the archive floor of an author."""
        within = [author for author in floors if floors[author] > window.low]
        if not within:
            return []
        high = min(window.high, max(floors.values()) + 1)
        rows = await self.scope.archive.merge(within, Window(window.count, forward=True, low=window.low, high=high))
        return [row.id for row in rows]

    async def _authors(self, posts: Sequence[int]) -> dict[int, int]:
        """Return the author of each post that is not deleted, from the store or the archive."""
        records = await self.scope.records(posts)
        found = {post: body.author for post, held in records.items() if (body := readable(post, held)) is not None}
        rows = await self.scope.archive.get_many([post for post in records if not records[post]])
        return found | {row.id: row.author for row in rows if row is not None}


def as_cache(
    viewer: int,
    home: Sequence[tuple[str, float]],
    ttl: int,
    following: Sequence[str],
    muting: Sequence[str],
    up_to: int,
) -> Cache:
    """Build a cache from the replies of the store, with the posts up to the number `up_to`."""
    floor = next((int(score) for member, score in home if member == "f"), None)
    marked = {int(member[1:]) for member, score in home if score == -1 and member[1:].isdecimal()}
    posts = {int(member): score for member, score in home if member.isdecimal()}
    misplaced = [str(post) for post, score in posts.items() if post != score]
    misplaced += [m for m, s in home if not m.isdecimal() and m != "f" and not (m[0] == "a" and s == -1)]
    return Cache(
        viewer,
        floor or 0,
        frozenset(post for post in posts if (floor or 0) < post <= up_to),
        frozenset(marked),
        frozenset([viewer, *(int(author) for author in {*following} - {*muting} if author.isdecimal())]),
        "f" if floor is None or ttl == -1 else misplaced[0] if misplaced else "",
    )
