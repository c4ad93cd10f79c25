"""Finds the remaining posts, likes and relations of a deleted user, and returns the events that end them.

The sets of the user are read before the archive: an element that is cut from a set between the reads is in the archive.
Each read returns the events for a few hundred elements, and is repeated until it returns none.
"""

from collections.abc import Sequence
from typing import TypeAlias

from graph import keys
from graph.archive.rows import LIKE, POST, REPOST, EventRow, post_of
from graph.binding import Binding
from graph.log.encoding import decode
from graph.log.events import EventBody, Liked, PostDeleted, Unliked, Unreposted
from graph.model import Post
from graph.post_lists import REPLIED, TIMELINE, PostList
from graph.posts.posts import deletion_of
from graph.records import read_post, split_posts
from graph.relations.register import RELATIONS
from graph.store.commands import Command
from graph.store.store import Store
from graph.text.terms import digest_of

AT_ONCE = 500

Endings: TypeAlias = list[EventBody]
"""Events that each end one element, such as a like."""

ReadPosition: TypeAlias = tuple[int, int]
"""How far other users' relations with the user have been read: an index in `RELATIONS`, and an event number."""
FIRST_POSITION: ReadPosition = (0, 0)


class Remains:
    """Reads the remaining elements of deleted users, about `at_once` at a time."""

    def __init__(self, store: Store, binding: Binding, at_once: int = AT_ONCE) -> None:
        self._store = store
        self._binding = binding
        self._at_once = at_once

    async def in_store(self, user: int) -> Endings:
        """Return the events that end the first elements in the user's sets in the store.

        One to four round trips, and up to three queries for archived posts. Raises ArchiveUnavailable.
        """
        of_relations = [relation.sets_of(user) for relation in RELATIONS]
        names = [name for some in of_relations for name in some]
        names += [TIMELINE.key(user), REPLIED.key(user), keys.liked(user), keys.reposted(user)]
        commands: list[Command] = [("ZRANGE", name, 0, self._at_once) for name in names]  # one member can be the floor
        rows = iter([[member for member in row if member != "f"] for row in await self._store.read(commands)])
        ends: Endings = []
        for relation, some in zip(RELATIONS, of_relations, strict=True):
            ends += relation.ends(user, [next(rows) for _ in some])
        posts, replied, liked, reposted = ([int(post) for post in row] for row in rows)
        if len(ends) < self._at_once and (posts or replied):
            room = self._at_once - len(ends)
            ends += await self._of_posts(user, posts[:room], TIMELINE)
            ends += await self._of_posts(user, replied[:room], REPLIED)
        if len(ends) < self._at_once and liked:
            ends += await self._of_likes(user, liked[: self._at_once - len(ends)])
        if not ends and reposted:
            ends += await self._of_reposts(user, reposted[: self._at_once])
        return ends[: self._at_once]

    async def _posts(self, posts: Sequence[int]) -> dict[int, Post]:
        """Return the live posts among these."""
        split = split_posts(posts, await self._store.read([read_post(post) for post in posts])) if posts else None
        if split is None:
            return {}
        absent = (await (await self._binding.archive()).look_up(split.absent)).posts if split.absent else {}
        return {**split.posts, **absent}

    async def _of_posts(self, user: int, posts: Sequence[int], post_list: PostList) -> Endings:
        """Return the deletions of posts in one of the user's lists, including posts without a record."""
        found = await self._posts(posts)
        return [
            ending(found[post]) if post in found else PostDeleted(user, post, listed=post_list is TIMELINE)
            for post in posts
        ]

    async def _of_reposts(self, user: int, originals: Sequence[int]) -> Endings:
        """Return the events that undo plain reposts that are only in the user's set of reposted posts."""
        [numbers] = await self._store.read([("ZMSCORE", keys.reposted(user), *originals)])
        return [
            Unreposted(user, original, int(number))
            for original, number in zip(originals, numbers, strict=True)
            if number is not None
        ]

    async def _of_likes(self, user: int, posts: Sequence[int]) -> Endings:
        """Return the events that undo likes. The author of a post without a record is read from the archive."""
        rows = await self._store.read([("HGET", keys.post(post), "author") for post in posts])
        authors = {post: int(author) for post, author in zip(posts, rows, strict=True) if author is not None}
        absent = [post for post in posts if post not in authors]
        if absent:
            archive = await self._binding.archive()
            authors |= {row.number: row.actor for row in await archive.rows(absent)}
        return [Unliked(user, post, authors.get(post, 0)) for post in posts]

    async def in_archive(self, user: int) -> Endings:
        """Return the events that end the first live posts and likes of the user in the archive. One query."""
        archive = await self._binding.archive()
        rows = await archive.by_actor([user], (POST, REPOST, LIKE), 0, self._at_once)
        return [end for row in rows if (end := ending_of_row(row)) is not None]

    async def of_others(self, user: int, position: ReadPosition) -> tuple[Endings, ReadPosition | None]:
        """Return the events that end others' relations with the user, starting at a position, and the next position.

        The next position is None if there are no further relations. At most one query and one round trip.
        """
        relation, after = position
        archive = await self._binding.archive()
        ends, last = await RELATIONS[relation].ends_by_others(archive, self._store, user, after, self._at_once)
        if last is not None:
            return ends, (relation, last)
        return ends, (relation + 1, 0) if relation + 1 < len(RELATIONS) else None


def ending(post: Post) -> EventBody:
    """Return the event that deletes a post, with the digest of its text, or ends a plain repost."""
    return deletion_of(post, digest_of(post.text))


def ending_of_row(row: EventRow) -> EventBody | None:
    """Return the event that deletes an archived post or removes an archived like. None if the like is damaged."""
    if row.kind in (POST, REPOST):
        return ending(post_of(row))
    try:
        body = decode(*row).body
    except ValueError:
        return None
    return Unliked(body.user, body.post, body.author) if isinstance(body, Liked) else None
