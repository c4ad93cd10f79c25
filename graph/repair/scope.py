"""What all parts of a repair share: the store in bulk, the archive while it answers, and how far events count.

Everything is read in chunks and pipelined: what is held at a time depends on the chunk, never on how much the store
holds.
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
MEMBERS_OF_ONE = range(20, 1000)
COMMANDS_PER_TRIP = 1000
MEMBERS_PER_COMMAND = 1000
QUERIES_AT_ONCE = 4
ATTEMPTS = 3

Key = Callable[[int], str]


class Scope:
    """The data that a repair goes through. Only events up to `drained` count: later ones may be half projected.

    `archive` is None when there is none or it stopped answering, `trouble` says why in the second case. `archived`
    tells whether the store has posts in an archive at all. `seen` counts the keys that were gone through.
    """

    def __init__(self, store: Store, log: Log, archive: "Archive | None", watermark: int, *, archived: bool) -> None:
        self.store = store
        self.log = log
        self.archive = archive
        self.watermark = watermark
        self.archived = archived
        self.trouble = ""
        self.seen = 0
        self._queries = asyncio.Semaphore(QUERIES_AT_ONCE)
        self._inserting = asyncio.Lock()

    def lose(self, trouble: str) -> None:
        """Go on without the archive."""
        self.archive = None
        self.trouble = self.trouble or trouble

    @property
    def blind(self) -> bool:
        """Whether there are, or may be, archived posts that this repair cannot see."""
        return self.archive is None and (self.archived or bool(self.trouble))

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands, a thousand in one round trip."""
        replies: list[Any] = []
        for start in range(0, len(commands), COMMANDS_PER_TRIP):
            replies += await self.store.send(commands[start : start + COMMANDS_PER_TRIP])
        return replies

    async def names(self, pattern: str, most: int = OWNERS_AT_ONCE) -> AsyncIterator[list[str]]:
        """Yield what stands in the braces of the keys of a pattern, so many at a time; a name may come twice.

        One round trip for about every thousand keys in the store.
        """
        waiting: list[str] = []
        async for found in self.store.scan(pattern):
            waiting += [key[key.index("{") + 1 : -1] for key in found]
            while len(waiting) >= most:
                self.seen += most
                yield waiting[:most]
                del waiting[:most]
        self.seen += len(waiting)
        if waiting:
            yield waiting

    async def owners(self, key: Key, most: int = OWNERS_AT_ONCE) -> AsyncIterator[list[int]]:
        """Yield the numbers in the braces of the keys of one kind, so many at a time; one may come twice."""
        async for names in self.names(pattern(key), most):
            yield [int(name) for name in names if name.isdecimal()]

    async def members(self, key: Key, owners: Iterable[int]) -> AsyncIterator[list[tuple[int, int]]]:
        """Yield (owner, member) of sorted sets, about 10,000 at a time; one may come twice.

        One round trip each time, which reads some of every owner's: few of each while there are many, at most about
        1,000 of one.
        """
        cursors: dict[int, int] = dict.fromkeys(owners, 0)
        while cursors:
            count = min(max(MEMBERS_AT_ONCE // len(cursors), MEMBERS_OF_ONE.start), MEMBERS_OF_ONE.stop)
            scans: list[Command] = [("ZSCAN", key(owner), cursor, "COUNT", count) for owner, cursor in cursors.items()]
            replies = dict(zip(list(cursors), await self.ask(scans), strict=True))
            yield [
                (owner, int(member)) for owner, (_, row) in replies.items() for member in row[::2] if member.isdecimal()
            ]
            cursors = {owner: int(cursor) for owner, (cursor, _) in replies.items() if int(cursor)}

    async def scores(
        self, key: Key, wanted: Iterable[tuple[int, int | str]]
    ) -> dict[tuple[int, int | str], int | None]:
        """Read the scores of (owner, member) in sorted sets: those of one owner at once, in one command.

        One round trip for every thousand owners.
        """
        members: defaultdict[int, dict[int | str, None]] = defaultdict(dict)
        for owner, member in wanted:
            members[owner][member] = None
        reads = [(owner, some) for owner, group in members.items() for some in parts(list(group), MEMBERS_PER_COMMAND)]
        replies = await self.ask([("ZMSCORE", key(owner), *some) for owner, some in reads])
        return {
            (owner, member): None if score is None else int(score)
            for (owner, some), scores in zip(reads, replies, strict=True)
            for member, score in zip(some, scores, strict=True)
        }

    async def records(self, posts: Sequence[int]) -> dict[int, dict[str, str]]:
        """Read posts' records, tombstones among them; empty where there is none. A thousand in a round trip."""
        return dict(zip(posts, await self.ask([("HGETALL", keys.post(post)) for post in posts]), strict=True))

    async def rows(self, posts: Collection[int]) -> Mapping[int, Post] | None:
        """Look posts up in the archive, one query for every 2000; None if it cannot tell."""
        if self.archive is None:
            return None if self.blind else {}
        wanted = list(posts)
        try:
            found = await self.archive.get_many(wanted)
        except ArchiveUnavailable as outage:
            self.lose(outage.reason)
            return None
        return {post.id: post for post in found if post is not None}

    async def floors(self, authors: Iterable[int]) -> dict[int, Floors]:
        """Read the archive's floors of some authors, one query each. Raises ArchiveUnavailable."""

        async def read(author: int) -> Floors:
            if self.archive is None:
                raise ArchiveUnavailable(self.trouble)
            async with self._queries:
                return await self.archive.floors(author)

        wanted = list(dict.fromkeys(authors))
        return dict(zip(wanted, await asyncio.gather(*map(read, wanted)), strict=True))

    async def published(self, posts: Sequence[int]) -> dict[int, Post]:
        """Look posts up in the log, which holds the newest of those that were not deleted."""
        events = await asyncio.gather(*map(self.log.get, posts))
        return {
            post: published_post(post, event.body)
            for post, event in zip(posts, events, strict=True)
            if event is not None and isinstance(event.body, PostPublished)
        }

    async def raise_floor(self, author: int, old: int, new: int) -> bool:
        """Let the archive know that an author's posts were moved up to a floor; False if it has changed meanwhile."""
        return self.archive is not None and await self.archive.add(author, [], old, new)

    async def add_row(self, post: Post) -> bool:
        """Add a post's row to the archive, unless the post was deleted; tell whether that is settled.

        Three queries. A deletion that comes between takes the row away again: it hid the record beforehand.
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
    """Give the pattern that all keys of one kind match."""
    return key(0).replace("{0}", "{*}")


def parts(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """Cut a list into parts of at most so many."""
    return [items[start : start + most] for start in range(0, len(items), most)]


def living(record: Mapping[str, str]) -> Post | None:
    """Read a post's record; None for a tombstone, nothing, or what nobody can read."""
    if not {"id", "author", "text"} <= record.keys() or "deleted" in record:
        return None
    try:
        return as_post(int(record["id"]), [record.get(column) for column in POST_COLUMNS])
    except (KeyError, ValueError):
        return None
