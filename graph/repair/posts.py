"""Comparison of posts: a listed post has a record, and a record's post is listed in its author's timeline.

`Listings` compares timelines with records. `Records` compares records with timelines or, below the archive floor, with
the archive.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from graph import keys
from graph.model import Post
from graph.repair.report import Correction, Difference, Kind, Part
from graph.repair.scope import Scope, live_post, pattern
from graph.store.commands import Command, Word, script


@dataclass(frozen=True, slots=True)
class Entry:
    """A post and its author, as named by a timeline or by a row of the archive."""

    author: int
    post: int


@dataclass(frozen=True, slots=True)
class PostState:
    """The state of an author's post in the store.

    listed: its score in the author's timeline.
    floor: the archive floor of the timeline; None if there is no timeline.
    unlisted: the number of its tombstone in the timeline.
    unlisted_floor: the floor of the timeline's tombstones.
    tombstone: the number of the deletion in its record.
    live: the post, if its record can be read.
    """

    author: int
    post: int
    listed: int | None
    floor: int | None
    unlisted: int | None
    unlisted_floor: int
    tombstone: int | None
    live: Post | None

    @property
    def deleted(self) -> int | None:
        """The number of the post's deletion; None if it was not deleted."""
        return self.tombstone if self.tombstone is not None else self.unlisted

    @property
    def archived(self) -> bool:
        """Whether the post is at or below the archive floor."""
        return self.post <= (self.floor or 0)


async def read_states(scope: Scope, entries: Sequence[Entry], records: dict[int, dict[str, str]]) -> list[PostState]:
    """Return the states of posts, given their records. 2 round trips per 1,000 authors.

    The records must be read before: a move to the archive removes the post from the timeline first and deletes the
    record later, and a deletion replaces the record first.
    """

    def gone(author: int) -> str:
        return keys.gone(keys.posts(author))

    places = [(e.author, e.post) for e in entries]
    floors = [(e.author, "f") for e in entries]
    listed = await scope.scores(keys.posts, [*floors, *places])
    unlisted = await scope.scores(gone, [*places, *floors])
    return [
        PostState(
            e.author,
            e.post,
            listed[e.author, e.post],
            listed[e.author, "f"],
            unlisted[e.author, e.post],
            unlisted[e.author, "f"] or 0,
            int(records[e.post]["deleted"]) if "deleted" in records[e.post] else None,
            live_post(records[e.post]),
        )
        for e in entries
    ]


class PostCorrections:
    """Corrections of posts. Each one is idempotent, and changes nothing if the post has changed in the meantime."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def unlist(self, entry: Entry, deletion: int | None) -> bool:
        """Remove a post from a timeline. With the number of its deletion, write the tombstones too."""
        name, post = keys.posts(entry.author), entry.post
        commands: list[Command] = []
        if deletion is not None:
            await self.write_tombstone(post, deletion)
            commands.append(
                script("unlist_post").call([name, keys.gone(name), keys.cold(entry.author)], 0, post, deletion)
            )
        await self._scope.send([*commands, ("ZREM", name, post)])
        return True

    async def write_tombstone(self, post: int, deletion: int) -> bool:
        """Replace the record of a deleted post by its tombstone."""
        await self._scope.send([script("delete_post").call([keys.post(post)], deletion)])
        return True

    async def list_again(self, entry: Entry) -> bool:
        """Add a post to its author's timeline again."""
        name = keys.posts(entry.author)
        [[state]] = await self._scope.send([script("repair_listing").call([name, keys.gone(name)], entry.post)])
        return bool(state == "listed")

    async def fix_position(self, entry: Entry) -> bool:
        """Set the score of a listed post."""
        await self._scope.send([("ZADD", keys.posts(entry.author), "XX", entry.post, entry.post)])
        return True

    async def write_record(self, post: Post) -> bool:
        """Write a post's record and list the post. Remove the record again if the post is archived or deleted."""
        name = keys.posts(post.author)
        [written] = await self._scope.send([script("repair_record").call([keys.post(post.id)], *fields(post))])
        if not written:
            return False
        [[state, *number]] = await self._scope.send([script("repair_listing").call([name, keys.gone(name)], post.id)])
        if state == "deleted":
            return await self.write_tombstone(post.id, int(number[0]))
        return state == "listed" or await self.free_record(post.id)

    async def free_record(self, post: int) -> bool:
        """Delete the record of an archived post."""
        await self._scope.send([script("free_post").call([keys.post(post)])])
        return True

    async def move_to_archive(self, entry: Entry, post: Post | None) -> bool:
        """Remove a post below the archive floor from the timeline, after adding its row if `post` is given."""
        if post is not None and not await self._scope.add_row(post):
            return False
        await self._scope.send([("ZREM", keys.posts(entry.author), entry.post)])
        return True


class Listings:
    """Compares each listed post with its record.

    Round trips per chunk of 500 timelines and 10,000 posts: one to read the timelines, one per 1,000 records, and two
    for the authors. Posts without a record are read from the archive, one query per 2,000, and from the log.
    """

    part = Part.POSTS
    key_pattern = pattern(keys.posts)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._corrections = PostCorrections(scope)

    async def subjects(self) -> AsyncIterator[list[Entry]]:
        """Yield all posts of all timelines."""
        async for authors in self._scope.owners(keys.posts):
            async for members in self._scope.members(keys.posts, authors):
                yield [Entry(author, post) for author, post in members]

    async def compare(self, entries: Sequence[Entry]) -> list[Difference[Entry]]:
        """Return the posts that must not be listed, and the posts that cannot be read."""
        entries = [entry for entry in dict.fromkeys(entries) if entry.post <= self._scope.watermark]
        records = await self._scope.records([entry.post for entry in entries])
        states = [s for s in await read_states(self._scope, entries, records) if s.listed is not None]
        found = [difference for state in states if (difference := self._check(state))]
        checked = {difference.subject for difference in found}
        rest = [s for s in states if Entry(s.author, s.post) not in checked and s.deleted is None]
        return found + await self._without_record([s for s in rest if s.live is None or s.archived])

    def _check(self, state: PostState) -> Difference[Entry] | None:
        """Return a difference that is visible in the store alone."""
        entry = Entry(state.author, state.post)
        text = f"post {state.post} in the timeline of user {state.author}"
        if state.deleted is not None:
            if state.deleted > self._scope.watermark:
                return None
            correct: Correction = partial(self._corrections.unlist, entry, state.deleted)
            return Difference(Kind.DELETED_POST_LISTED, entry, f"{text}, deleted by event {state.deleted}", correct)
        if state.live is not None and state.live.author != state.author:
            correct = partial(self._corrections.unlist, entry, None)
            return Difference(Kind.WRONG_AUTHOR_LISTED, entry, f"{text}, but by user {state.live.author}", correct)
        if state.listed != state.post and state.live is not None and not state.archived:
            correct = partial(self._corrections.fix_position, entry)
            return Difference(Kind.WRONG_POSITION, entry, f"{text} has position {state.listed}", correct)
        return None

    async def _without_record(self, states: Sequence[PostState]) -> list[Difference[Entry]]:
        """Compare posts without a record and posts below the archive floor with the archive and the log."""
        if not states:
            return []
        rows = await self._scope.rows([state.post for state in states])
        logged = await self._scope.published([s.post for s in states if s.live is None and s.post not in (rows or {})])
        found = []
        for state in states:
            post = state.live or (rows or {}).get(state.post) or logged.get(state.post)
            if post is not None and post.author != state.author:
                post = None
            found.append(self._missing(state, post, known=rows is not None, has_row=state.post in (rows or {})))
        return found

    def _missing(self, state: PostState, post: Post | None, *, known: bool, has_row: bool) -> Difference[Entry]:
        entry = Entry(state.author, state.post)
        text = f"post {state.post} in the timeline of user {state.author}"
        correct: Correction | None = None
        if state.archived and (post is not None or not known):
            text = f"{text}, whose archive floor is {state.floor}"
            if known:
                correct = partial(self._corrections.move_to_archive, entry, None if has_row else post)
            return Difference(Kind.ARCHIVED_POST_LISTED, entry, text, correct)
        if post is not None:
            return Difference(Kind.RECORD_MISSING, entry, text, partial(self._corrections.write_record, post))
        if not known:
            return Difference(Kind.RECORD_MISSING, entry, f"{text}; the archive cannot be read")
        return Difference(Kind.POST_LOST, entry, text, partial(self._corrections.unlist, entry, None))


class Records:
    """Compares each record with its author's timeline or, below the archive floor, with the archive.

    Three round trips per 500 records. Archived posts take one query of the archive, and one more per author.
    """

    part = Part.POSTS
    key_pattern = pattern(keys.post)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._corrections = PostCorrections(scope)

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the posts of all records."""
        return self._scope.owners(keys.post)

    async def compare(self, posts: Sequence[int]) -> list[Difference[int]]:
        """Return the records whose posts are neither listed nor archived, and the damaged records."""
        records = await self._scope.records([post for post in posts if post <= self._scope.watermark])
        alive = {post: found for post, row in records.items() if (found := live_post(row)) is not None}
        damaged = {p: row for p, row in records.items() if row and "deleted" not in row and p not in alive}
        entries = [Entry(post.author, post.id) for post in alive.values()]
        states = [s for s in await read_states(self._scope, entries, records) if s.listed is None]
        checked = [difference for state in states if (difference := self._check(state))]
        archived = [state for state in states if state.archived and state.unlisted is None]
        return checked + await self._archived(archived) + await self._damaged(damaged)

    def _check(self, state: PostState) -> Difference[int] | None:
        """Return a difference that is visible in the store alone."""
        text = f"post {state.post} by user {state.author}"
        if state.unlisted is not None:
            if state.unlisted > self._scope.watermark:
                return None
            correct: Correction = partial(self._corrections.write_tombstone, state.post, state.unlisted)
            text = f"{text}, deleted by event {state.unlisted}"
            return Difference(Kind.DELETED_POST_HAS_RECORD, state.post, text, correct)
        if state.archived:
            return None
        if state.floor is None and self._scope.archive_unreadable:
            text = f"{text}; the timeline is missing, and the archive, which holds its floor, cannot be read"
            return Difference(Kind.POST_UNLISTED, state.post, text)
        return Difference(
            Kind.POST_UNLISTED, state.post, text, partial(self._corrections.list_again, Entry(state.author, state.post))
        )

    async def _archived(self, states: Sequence[PostState]) -> list[Difference[int]]:
        """Compare records below the archive floor with the archive.

        Each one needs a row. Records up to the archive's `freed` floor must be deleted.
        """
        rows = await self._scope.rows([state.post for state in states]) if states else None
        if rows is None:
            return []
        floors = await self._scope.floors(state.author for state in states)
        again = await self._scope.records([state.post for state in states])
        found = []
        for state in states:
            post = live_post(again[state.post])
            freed = state.post <= floors[state.author].freed
            text = f"post {state.post} by user {state.author}"
            if post is not None and post.id not in rows:
                correct: Correction = partial(self._add_row, post, freed=freed)
                found.append(Difference(Kind.ROW_MISSING, state.post, f"{text}, archived up to {state.floor}", correct))
            elif post is not None and freed:
                correct = partial(self._corrections.free_record, state.post)
                found.append(Difference(Kind.ARCHIVED_POST_HAS_RECORD, state.post, text, correct))
        return found

    async def _add_row(self, post: Post, *, freed: bool) -> bool:
        done = await self._scope.add_row(post)
        return done and (not freed or await self._corrections.free_record(post.id))

    async def _damaged(self, records: dict[int, dict[str, str]]) -> list[Difference[int]]:
        """Return the damaged records, except those of listed posts: `Listings` finds them."""
        if not records:
            return []
        known = await self._scope.published(list(records)) | dict(await self._scope.rows(records) or {})
        authors = {post: known[post].author for post in known} | {
            post: int(row["author"]) for post, row in records.items() if row.get("author", "").isdecimal()
        }
        listed = await self._scope.scores(keys.posts, [(author, post) for post, author in authors.items()])
        return [
            Difference(
                Kind.RECORD_DAMAGED,
                post,
                f"post {post}",
                partial(self._corrections.write_record, known[post]) if post in known else None,
            )
            for post in records
            if post not in authors or listed[authors[post], post] is None
        ]


def fields(post: Post) -> list[Word]:
    """Return a post's record as alternating fields and values."""
    words: list[Word] = ["id", post.id, "author", post.author, "text", post.text]
    if post.platform is not None:
        words += ("platform", post.platform)
    if post.location is not None:
        words += ("latitude", post.location.latitude, "longitude", post.location.longitude)
    return words
