"""The data that all comparisons of a repair read: the store, the archive while it is available, and the watermark.

All reads are pipelined in chunks. Memory depends on the size of a chunk, not on the size of the store.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graph import keys
from graph.archive.floors import Floors
from graph.errors import ArchiveUnavailable
from graph.log.events import PostPublished
from graph.log.log import Log
from graph.model import Post
from graph.records import POST_COLUMNS, as_post, published_post
from graph.store.commands import Command
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

OWNERS_AT_ONCE = 500
MEMBERS_AT_ONCE = 10_000
MEMBERS_PER_OWNER = range(20, 1000)
COMMANDS_PER_TRIP = 1000
MEMBERS_PER_COMMAND = 1000
QUERIES_AT_ONCE = 4
ATTEMPTS = 3

Key = Callable[[int], str]


class Scope:
    """The data of one repair. Events after `watermark` are ignored, because they may be partly projected.

    `archive` is None if none is configured, or if it failed; `archive_error` is then the reason. `archived` is True if
    the store has an archive. `scanned` counts the keys that the current comparison has scanned.
    """

    def __init__(self, store: Store, log: Log, archive: "Archive | None", watermark: int, *, archived: bool) -> None:
        self.store = store
        self.log = log
        self.archive = archive
        self.watermark = watermark
        self.archived = archived
        self.archive_error = ""
        self.scanned = 0
        self._queries = asyncio.Semaphore(QUERIES_AT_ONCE)
        self._inserting = asyncio.Lock()

    def drop_archive(self, reason: str) -> None:
        """Continue without the archive."""
        self.archive = None
        self.archive_error = self.archive_error or reason

    @property
    def archive_unreadable(self) -> bool:
        """Whether there may be archived posts that this repair cannot read."""
        return self.archive is None and (self.archived or bool(self.archive_error))

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return their replies. One round trip per 1,000 commands."""
        replies: list[Any] = []
        for start in range(0, len(commands), COMMANDS_PER_TRIP):
            replies += await self.store.send(commands[start : start + COMMANDS_PER_TRIP])
        return replies

    async def names(self, pattern: str, size: int = OWNERS_AT_ONCE) -> AsyncIterator[list[str]]:
        """Yield the hash tags of the keys that match a pattern, in chunks. A name may be yielded twice.

        One round trip per 1,000 keys in the store.
        """
        waiting: list[str] = []
        async for found in self.store.scan(pattern):
            waiting += [key[key.index("{") + 1 : -1] for key in found]
            while len(waiting) >= size:
                self.scanned += size
                yield waiting[:size]
                del waiting[:size]
        self.scanned += len(waiting)
        if waiting:
            yield waiting

    async def owners(self, key: Key, size: int = OWNERS_AT_ONCE) -> AsyncIterator[list[int]]:
        """Yield the ids in the keys of one kind, in chunks. An id may be yielded twice."""
        async for names in self.names(pattern(key), size):
            yield [int(name) for name in names if name.isdecimal()]

    async def members(self, key: Key, owners: Iterable[int]) -> AsyncIterator[list[tuple[int, int]]]:
        """Yield (owner, member) pairs of sorted sets, about 10,000 at a time. A pair may be yielded twice.

        One round trip per chunk. It reads a part of every owner's set, at most about 1,000 members.
        """
        cursors: dict[int, int] = dict.fromkeys(owners, 0)
        while cursors:
            count = min(max(MEMBERS_AT_ONCE // len(cursors), MEMBERS_PER_OWNER.start), MEMBERS_PER_OWNER.stop)
            scans: list[Command] = [("ZSCAN", key(owner), cursor, "COUNT", count) for owner, cursor in cursors.items()]
            replies = dict(zip(list(cursors), await self.send(scans), strict=True))
            yield [
                (owner, int(member)) for owner, (_, row) in replies.items() for member in row[::2] if member.isdecimal()
            ]
            cursors = {owner: int(cursor) for owner, (cursor, _) in replies.items() if int(cursor)}

    async def scores(
        self, key: Key, wanted: Iterable[tuple[int, int | str]]
    ) -> dict[tuple[int, int | str], int | None]:
        """Return the scores of (owner, member) pairs in sorted sets. One command per owner, 1,000 per round trip."""
        members: defaultdict[int, dict[int | str, None]] = defaultdict(dict)
        for owner, member in wanted:
            members[owner][member] = None
        reads = [
            (owner, chunk) for owner, group in members.items() for chunk in chunks(list(group), MEMBERS_PER_COMMAND)
        ]
        replies = await self.send([("ZMSCORE", key(owner), *chunk) for owner, chunk in reads])
        return {
            (owner, member): None if score is None else int(score)
            for (owner, chunk), scores in zip(reads, replies, strict=True)
            for member, score in zip(chunk, scores, strict=True)
        }

    async def records(self, posts: Sequence[int]) -> dict[int, dict[str, str]]:
        """Return the records of posts, including tombstones; a missing record is empty. 1,000 per round trip."""
        return dict(zip(posts, await self.send([("HGETALL", keys.post(post)) for post in posts]), strict=True))

    async def rows(self, posts: Collection[int]) -> Mapping[int, Post] | None:
        """Return the archived posts among these, or None if the archive cannot be read. One query per 2,000."""
        if self.archive is None:
            return None if self.archive_unreadable else {}
        wanted = list(posts)
        try:
            found = await self.archive.get_many(wanted)
        except ArchiveUnavailable as outage:
            self.drop_archive(outage.reason)
            return None
        return {post.id: post for post in found if post is not None}

    async def floors(self, authors: Iterable[int]) -> dict[int, Floors]:
        """Return the archive's floors of authors. One query per author. Raises ArchiveUnavailable."""

        async def read(author: int) -> Floors:
            if self.archive is None:
                raise ArchiveUnavailable(self.archive_error)
            async with self._queries:
                return await self.archive.floors(author)

        wanted = list(dict.fromkeys(authors))
        return dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True))

    async def published(self, posts: Sequence[int]) -> dict[int, Post]:
        """Return the posts that the log still holds. Retention and deletions remove posts from the log."""
        events = await asyncio.gather(*map(self.log.get, posts))
        return {
            post: published_post(post, event.body)
            for post, event in zip(posts, events, strict=True)
            if event is not None and isinstance(event.body, PostPublished)
        }

    async def raise_floor(self, author: int, old: int, new: int) -> bool:
        """Raise the archive's floor of an author from `old` to `new`. Return False if the floor is not `old`."""
        return self.archive is not None and await self.archive.add(author, [], old, new)

    async def add_row(self, post: Post) -> bool:
        """Add a post's row to the archive, unless the post was deleted. Return False if the floor kept changing.

        Three queries and one round trip. If the post is deleted at the same time, the row is removed again: a deletion
        writes the tombstone first.
        """
        if self.archive is None:
            return False
        async with self._inserting:
            for _ in range(ATTEMPTS):
                floors = await self.archive.floors(post.author)
                if await self.archive.add(post.author, [post], floors.moved, floors.moved):
                    break
            else:
                return False
            if await self.store.run("HEXISTS", keys.post(post.id), "deleted"):
                await self.archive.delete([post.id])
        return True


def pattern(key: Key) -> str:
    """Return the pattern that matches all keys of one kind."""
    return key(0).replace("{0}", "{*}")


def chunks(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Split a sequence into chunks of at most `size` items."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def live_post(record: Mapping[str, str]) -> Post | None:
    """Return the post of a record, or None for a tombstone, a missing record, or a damaged record."""
    if not {"id", "author", "text"} <= record.keys() or "deleted" in record:
        return None
    try:
        return as_post(int(record["id"]), [record.get(column) for column in POST_COLUMNS])
    except (KeyError, ValueError):
        return None
