"""The data that all comparisons of a repair share: the archive up to a number, and the store, in bounded chunks.

A comparison reads the archive first and the store afterwards. The store is never behind the archive, so data that
differs is damaged, or newer than the data that was read from the archive.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graph import keys
from graph.binding import Binding
from graph.chunks import chunks
from graph.commit import Commit
from graph.fold import content
from graph.fold.content import Member
from graph.fold.reading import ROWS, Fold, FoldedBatch, pages_of_one
from graph.model import MAX_NUMBER
from graph.post_lists import PostList
from graph.repair.report import Difference
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

OWNERS_AT_ONCE = 500
MEMBERS_AT_ONCE = 10_000
MEMBERS_PER_OWNER = range(20, 1000)
COMMANDS_PER_TRIP = 1000
MEMBERS_PER_COMMAND = 1000

Key = Callable[[int], str]
Element = tuple[int, int]
"""The owner of a set, and an element of the set."""


@dataclass(slots=True)
class Scope:
    """The data of one repair. Events after `up_to` are not compared. `scanned` counts the ids scanned so far."""

    store: Store
    archive: "Archive"
    binding: Binding
    commit: Commit
    tuning: Tuning
    up_to: int
    scanned: int = 0

    async def users(self, key: Key) -> AsyncIterator[list[int]]:
        """Yield all users in chunks, then the ids in the store's keys of one kind that are not users in the archive.

        One query per chunk. An id of the store may be yielded twice.
        """
        after = -1
        while users := await self.archive.user_ids(after, OWNERS_AT_ONCE):
            after = users[-1]
            self.scanned += len(users)
            yield [user for user in users if user <= self.up_to]
        async for strangers in self.strangers(key):
            yield strangers

    async def strangers(self, key: Key) -> AsyncIterator[list[int]]:
        """Yield the ids in the store's keys of one kind that are not users in the archive. One query per chunk."""
        async for owners in self.owners(key, OWNERS_AT_ONCE):
            self.scanned -= len(owners)
            known = await self.archive.credentials(owners)
            yield [owner for owner in owners if owner not in known and owner <= self.up_to]

    async def owners(self, key: Key, size: int) -> AsyncIterator[list[int]]:
        """Yield the ids in the store's keys of one kind, in chunks. An id may be yielded twice.

        One round trip per 1,000 keys in the store.
        """
        waiting: list[int] = []
        async for found in self.store.scan(key(0).replace("{0}", "{*}")):
            names = (name[name.index("{") + 1 : -1] for name in found)
            waiting += [int(name) for name in names if name.isdecimal()]
            while len(waiting) >= size:
                self.scanned += size
                yield waiting[:size]
                del waiting[:size]
        self.scanned += len(waiting)
        yield waiting

    async def list_owners(self, post_list: PostList) -> AsyncIterator[list[int]]:
        """Yield the owners of lists of one kind in the archive, then the owners whose lists are only in the store.

        One query per chunk.
        """
        after = -1
        while owners := await self.archive.owners(post_list, after, OWNERS_AT_ONCE):
            after = owners[-1]
            yield [owner for owner in owners if owner <= self.up_to]
        async for held in self.owners(post_list.key, OWNERS_AT_ONCE):
            counts, _ = await self.archive.post_counts([(owner, MAX_NUMBER) for owner in held], post_list)
            yield [owner for owner, count in zip(held, counts, strict=True) if not count and owner <= self.up_to]

    async def folded(
        self,
        owners: Sequence[int],
        part: content.Part,
        kinds: Sequence[str],
        fold: Fold,
        secrets: Mapping[int, str | None] | None = None,
    ) -> AsyncIterator[tuple[Sequence[int], content.Content]]:
        """Yield groups of the owners, each with the content derived from the group's events of these kinds.

        A group has fewer than 10,000 events, so that one query reads them, or it has only one owner.
        """
        read = self.archive.by_actor
        rows = await read(owners, kinds, 0, ROWS)
        if len(rows) == ROWS and len(owners) > 1:
            for half in chunks(owners, (len(owners) + 1) // 2):
                async for some in self.folded(half, part, kinds, fold, secrets):
                    yield some
            return
        batch = FoldedBatch(content.Content(owners, secrets=secrets, parts=[part]), fold)
        if len(rows) < ROWS:
            batch.add(row for row in rows if row.number <= self.up_to)
        else:
            async for page in pages_of_one(read, owners[0], kinds, 0, ROWS):
                batch.add(row for row in page if row.number <= self.up_to)
        yield owners, batch.content

    async def send(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands and return their replies. One round trip per 1,000 commands."""
        return [reply for some in chunks(commands, COMMANDS_PER_TRIP) for reply in await self.store.send(some)]

    async def members(self, key: Key, owners: Iterable[int]) -> AsyncIterator[dict[Element, int]]:
        """Yield members of sorted sets with their scores, about 10,000 at a time. A member may be yielded twice.

        One round trip per chunk. A chunk has a part of every owner's set, at most about 1,000 members of each.
        """
        cursors = dict.fromkeys(owners, 0)
        while cursors:
            count = min(max(MEMBERS_AT_ONCE // len(cursors), MEMBERS_PER_OWNER.start), MEMBERS_PER_OWNER.stop)
            scans: list[Command] = [("ZSCAN", key(owner), cursor, "COUNT", count) for owner, cursor in cursors.items()]
            replies = dict(zip(list(cursors), await self.send(scans), strict=True))
            yield {
                (owner, int(member)): int(float(score))
                for owner, (_, row) in replies.items()
                for member, score in zip(row[::2], row[1::2], strict=True)
                if member.isdecimal()
            }
            cursors = {owner: int(cursor) for owner, (cursor, _) in replies.items() if int(cursor)}

    async def scores(
        self, key: Key, wanted: Iterable[tuple[int, Member]], *others: Key
    ) -> dict[tuple[int, Member], list[int | None]]:
        """Return the scores of members in the owners' sets of kind `key` and of the kinds `others`, read together.

        One command per set, 1,000 per round trip.
        """
        members: defaultdict[int, dict[Member, None]] = defaultdict(dict)
        for owner, member in wanted:
            members[owner][member] = None
        reads = [(owner, some) for owner, all_ in members.items() for some in chunks(list(all_), MEMBERS_PER_COMMAND)]
        kinds = (key, *others)
        replies = await self.send([("ZMSCORE", kind(owner), *some) for owner, some in reads for kind in kinds])
        return {
            (owner, member): [None if score is None else int(score) for score in scores]
            for place, (owner, some) in enumerate(reads)
            for member, *scores in zip(some, *replies[place * len(kinds) : (place + 1) * len(kinds)], strict=True)
        }

    async def states(self, key: Key, elements: Iterable[tuple[int, Member]]) -> dict[tuple[int, Member], int | None]:
        """Return the states of elements of versioned sets: see `repair_element.lua`. One round trip per 500 sets."""
        found = await self.scores(key, elements, lambda owner: keys.gone(key(owner)))
        return {element: state_of(*found[element]) for element in elements}

    async def records(self, posts: Sequence[int]) -> dict[int, dict[str, str]]:
        """Return the records of posts, including tombstones but without counts; a missing record is empty.

        One round trip per 1,000 posts.
        """
        rows = await self.send([("HGETALL", keys.post(post)) for post in posts])
        return {
            post: {name: value for name, value in row.items() if name not in keys.COUNT_FIELDS}
            for post, row in zip(posts, rows, strict=True)
        }


class Comparison(ABC):
    """Compares one part of the data, by the owners of keys of one kind. If `of_users` is True, the owners are users."""

    part: ClassVar[str]
    key: ClassVar["staticmethod[[int], str]"]
    of_users: ClassVar[bool] = True
    owners_at_once: ClassVar[int] = OWNERS_AT_ONCE

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the owners to compare in chunks: owners of keys and, with `of_users`, all users."""
        return self.scope.users(self.key) if self.of_users else self.scope.owners(self.key, self.owners_at_once)

    @abstractmethod
    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in the data of these owners."""


def state_of(member: int | None, tombstone: int | None) -> int | None:
    """Return the state of an element: the number of a member, the negative number of a tombstone, or None."""
    return member if member is not None or tombstone is None else -tombstone


def set_element(
    key: Key,
    element: tuple[int, int | str],
    found: int | None,
    new: int | None,
    *,
    home: int | None = None,
    floor: int | None = None,
) -> Command:
    """Return the command that sets the state of an element, if the state and archive floor are still as found."""
    owner, member = element
    names = [key(owner), keys.gone(key(owner)), *([] if home is None else [keys.home(home)])]
    return script("repair_element").call(names, member, *("" if word is None else word for word in (found, new, floor)))


def set_fields(key: str, found: Mapping[str, str], new: Mapping[str, str]) -> Command:
    """Return the command that replaces fields of a hash if they are still as found."""
    names = dict.fromkeys([*found, *new])
    values = ((name, *(f"={fields[name]}" if name in fields else "" for fields in (found, new))) for name in names)
    return script("repair_fields").call([key], *(word for words in values for word in words))


def number(text: str | None) -> int:
    """Return the number in a field, or 0 if the field is missing or is not a number."""
    try:
        return int(text or 0)
    except ValueError:
        return 0
