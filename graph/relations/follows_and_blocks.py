"""Follows and blocks: one state machine, because blocks decide which follows count.

`graph.relations.follow_changes` and `graph.relations.block_changes` project them.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

from graph import keys
from graph.archive.rows import EventRow
from graph.fold.content import Content, Part, PlacedFollows, VersionedSet
from graph.fold.reading import EventReader, FoldedBatch, names_of
from graph.fold.values import SortedSet, Stored, tombstone_keys, versioned_set_keys
from graph.log.events import Blocked, EventBody, Followed, Unblocked, Unfollowed
from graph.model import MAX_NUMBER
from graph.relations.relation import KeyCommand, Relation
from graph.relations.versioned_sets import moves

FOLLOW_KINDS = names_of((Followed, Unfollowed))
BLOCK_KINDS = names_of((Blocked, Unblocked))


class FollowsAndBlocks(Relation):
    """The follows and blocks between users. Each is held in the slots of both users."""

    kinds = (Followed, Unfollowed, Blocked, Unblocked)

    def fold(self, content: Content, number: int, body: Followed | Unfollowed | Blocked | Unblocked) -> None:
        """Add the event to the sets of both users."""
        match body:
            case Followed(actor, subject) | Unfollowed(actor, subject):
                included = content.includes(Part.FOLLOWING, actor), content.includes(Part.FOLLOWERS, subject)
                sets = content.following, content.followers
            case Blocked(actor, subject) | Unblocked(actor, subject):
                included = content.includes_blocks(actor), content.includes_blocks(subject)
                sets = content.blocking, content.blockers
        is_begun = isinstance(body, Followed | Blocked)
        for is_included, all_, owner, member in zip(included, sets, (actor, subject), (subject, actor), strict=True):
            if is_included:
                held = all_.setdefault(owner, VersionedSet())
                (held.add if is_begun else held.remove)(member, number)

    def stored(self, content: Content, tombstones_after: int) -> Stored:
        """Yield the keys of the follows, which are placed in sets according to the blocks, and of the blocks."""
        for key, sets in follow_sets(content):
            for user, follows in sets.items():
                yield from placed_keys(key, user, content.placed(user, follows), tombstones_after)
        for key, blocks in ((keys.blocking, content.blocking), (keys.blockers, content.blockers)):
            for user, held in blocks.items():
                if content.includes(Part.BLOCKS, user):
                    yield from versioned_set_keys(key, user, held, tombstones_after)

    async def batches(self, reader: EventReader, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the blocks, the followed users and the followers of users. Each event is counted once."""
        blocks = FoldedBatch(Content(users, parts=[Part.BLOCKS]), self.fold)
        await self.add_blocks(reader, blocks, users)
        yield blocks
        archive = reader.archive
        for part, read in ((Part.FOLLOWING, archive.by_actor), (Part.FOLLOWERS, archive.by_subject)):
            async for owners, rows, is_page in reader.pages(read, users, FOLLOW_KINDS):
                batch = await self._follows(reader, owners, part, rows, is_page=is_page)
                if part is Part.FOLLOWERS:
                    batch.events = 0
                yield batch

    async def _follows(
        self, reader: EventReader, owners: Sequence[int], part: Part, rows: Iterable[EventRow], *, is_page: bool
    ) -> FoldedBatch:
        """Return a batch of follows, with the blocks of the owners. The blocks are not counted again."""
        batch = FoldedBatch(Content(owners, parts=[part]), self.fold, is_page=is_page)
        await self.add_blocks(reader, batch, owners)
        batch.events = 0
        batch.add(rows)
        return batch

    async def add_blocks(
        self, reader: EventReader, batch: FoldedBatch, owners: Sequence[int], up_to: int = MAX_NUMBER
    ) -> None:
        """Add the blocks by and against owners to a batch, up to a number. Only the blocks by owners are counted.

        Needs memory for all blocks of the owners. Two queries, and one more per `reader.rows` rows.
        """
        archive = reader.archive
        for read in (archive.by_actor, archive.by_subject):
            counted, after = batch.events, 0
            while True:
                found = await read(owners, BLOCK_KINDS, after, reader.rows)
                batch.add(row for row in found if row.number <= up_to)
                if len(found) < reader.rows:
                    break
                after = found[-1].number
            if read == archive.by_subject:
                batch.events = counted

    def replacements(self, content: Content) -> Iterator[KeyCommand]:
        """Yield the commands that remove these follows from the sets in which earlier pages placed them.

        A follow is in one of three sets: the active follows, the held follows or the tombstones.
        """
        for key, sets in follow_sets(content):
            for owner, follows in sets.items():
                name, placed = key(owner), content.placed(owner, follows)
                tombstones = (placed.tombstones, keys.gone(name))
                yield from moves((placed.members, name), (placed.held, keys.held(name)), tombstones)

    def sets_of(self, user: int) -> Sequence[str]:
        """Return the keys of the user's follows and blocks, in both directions and including held follows."""
        following, followers = keys.following(user), keys.followers(user)
        names = [following, keys.held(following), followers, keys.held(followers)]
        return [*names, keys.blocking(user), keys.blockers(user)]

    def ends(self, user: int, members: Sequence[Sequence[str]]) -> Iterator[EventBody]:
        """Yield the events that end the follows and blocks by the user and against the user."""
        followed, held, followers, held_followers, blocked, blockers = (list(map(int, some)) for some in members)
        yield from (Unfollowed(user, other) for other in (*followed, *held))
        yield from (Unfollowed(other, user) for other in (*followers, *held_followers))
        yield from (Unblocked(user, other) for other in blocked)
        yield from (Unblocked(other, user) for other in blockers)

    async def ends_by_others(
        self, archive: object, store: object, user: int, after: int, limit: int
    ) -> tuple[list[EventBody], int | None]:
        """Return nothing: the user's sets name all other users."""
        return [], None


def follow_sets(content: Content) -> tuple[tuple[Callable[[int], str], Mapping[int, VersionedSet[int]]], ...]:
    """Return the lists of follows in the content by owner, of both kinds, with the functions that return their keys."""
    return (keys.following, content.following), (keys.followers, content.followers)


def placed_keys(key: Callable[[int], str], owner: int, placed: PlacedFollows, tombstones_after: int = 0) -> Stored:
    """Yield the keys of an owner's follows or followers with their values: active and held follows, and tombstones."""
    name = key(owner)
    for at, follows in ((name, placed.members), (keys.held(name), placed.held)):
        if follows:
            yield at, SortedSet({str(user): number for user, number in follows.items()})
    yield from tombstone_keys(name, placed.tombstones, tombstones_after)
