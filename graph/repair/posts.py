"""Posts: every post that a timeline lists has a record, and every record stands in its author's timeline.

Both ways are gone: from the timelines to the records, and from the records to the timelines or, below the archive
floor, to the archive.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from graph import keys
from graph.model import Post
from graph.repair.report import Cure, Difference, Kind, Part
from graph.repair.scope import Scope, living, pattern
from graph.store.commands import Command, Word, script


@dataclass(frozen=True, slots=True)
class Entry:
    """A post, as an author's timeline, or a row of the archive, names it."""

    author: int
    post: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What the store holds of a post of an author.

    `listed` is its score in the author's timeline, `floor` the archive floor there (None if there is no timeline),
    `unlisted` the number that took it out of the timeline, `undone` the floor of such numbers; `tombstone` is the
    number in its record, and `living` the record if it can be read.
    """

    author: int
    post: int
    listed: int | None
    floor: int | None
    unlisted: int | None
    undone: int
    tombstone: int | None
    living: Post | None

    @property
    def deleted(self) -> int | None:
        """The number of the post's deletion, if it was deleted."""
        return self.tombstone if self.tombstone is not None else self.unlisted

    @property
    def archived(self) -> bool:
        """Whether it lies at or below the archive floor."""
        return self.post <= (self.floor or 0)


async def look(scope: Scope, entries: Sequence[Entry], records: dict[int, dict[str, str]]) -> list[Sight]:
    """Read what the store holds of posts whose records were read before. Two round trips for every thousand authors.

    The records come first: a post that leaves the timeline for the archive has a record until then, and a post that
    is deleted loses its record before its place.
    """

    def gone(author: int) -> str:
        return keys.gone(keys.posts(author))

    places = [(e.author, e.post) for e in entries]
    floors = [(e.author, "f") for e in entries]
    listed = await scope.scores(keys.posts, [*floors, *places])
    unlisted = await scope.scores(gone, [*places, *floors])
    return [
        Sight(
            e.author,
            e.post,
            listed[e.author, e.post],
            listed[e.author, "f"],
            unlisted[e.author, e.post],
            unlisted[e.author, "f"] or 0,
            int(records[e.post]["deleted"]) if "deleted" in records[e.post] else None,
            living(records[e.post]),
        )
        for e in entries
    ]


class Remedies:
    """What mends posts. Each is one step that may be repeated, and comes to nothing if the post has changed."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def unlist(self, entry: Entry, deletion: int | None) -> bool:
        """Take a post out of a timeline: for ever if it was deleted."""
        name, post = keys.posts(entry.author), entry.post
        commands: list[Command] = []
        if deletion is not None:
            await self.bury(post, deletion)
            commands.append(
                script("unlist_post").call([name, keys.gone(name), keys.cold(entry.author)], 0, post, deletion)
            )
        await self._scope.ask([*commands, ("ZREM", name, post)])
        return True

    async def bury(self, post: int, deletion: int) -> bool:
        """Let a deleted post have its tombstone."""
        await self._scope.ask([script("delete_post").call([keys.post(post)], deletion)])
        return True

    async def relist(self, entry: Entry) -> bool:
        """Put a post back into its author's timeline."""
        name = keys.posts(entry.author)
        [[state]] = await self._scope.ask([script("repair_listing").call([name, keys.gone(name)], entry.post)])
        return bool(state == "listed")

    async def place(self, entry: Entry) -> bool:
        """Put a listed post where it belongs."""
        await self._scope.ask([("ZADD", keys.posts(entry.author), "XX", entry.post, entry.post)])
        return True

    async def rewrite(self, post: Post) -> bool:
        """Write a post's record again, and list the post; the record goes again if it was archived or deleted."""
        name = keys.posts(post.author)
        [stands] = await self._scope.ask([script("repair_record").call([keys.post(post.id)], *fields(post))])
        if not stands:
            return False
        [[state, *number]] = await self._scope.ask([script("repair_listing").call([name, keys.gone(name)], post.id)])
        if state == "deleted":
            return await self.bury(post.id, int(number[0]))
        return state == "listed" or await self.free(post.id)

    async def free(self, post: int) -> bool:
        """Free the record of an archived post."""
        await self._scope.ask([script("free_post").call([keys.post(post)])])
        return True

    async def archive(self, entry: Entry, post: Post | None) -> bool:
        """Leave a post from below the archive floor to the archive, whose row it gets if it has none."""
        if post is not None and not await self._scope.add_row(post):
            return False
        await self._scope.ask([("ZREM", keys.posts(entry.author), entry.post)])
        return True


class Listed:
    """From every post that a timeline lists to its record.

    For 500 timelines and 10,000 posts in them a round trip to read them, one for every thousand records, and two for
    the authors. What has no record is looked for in the archive, one query for every 2000, and in the log.
    """

    part = Part.POSTS
    counts = pattern(keys.posts)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._remedies = Remedies(scope)

    async def subjects(self) -> AsyncIterator[list[Entry]]:
        """Go through all posts of all timelines."""
        async for authors in self._scope.owners(keys.posts):
            async for members in self._scope.members(keys.posts, authors):
                yield [Entry(author, post) for author, post in members]

    async def compare(self, entries: Sequence[Entry]) -> list[Difference[Entry]]:
        """Find the listed posts that should not be listed, and those that cannot be shown."""
        entries = [entry for entry in dict.fromkeys(entries) if entry.post <= self._scope.watermark]
        records = await self._scope.records([entry.post for entry in entries])
        sights = [s for s in await look(self._scope, entries, records) if s.listed is not None]
        found = [difference for sight in sights if (difference := self._judge(sight))]
        judged = {difference.subject for difference in found}
        rest = [s for s in sights if Entry(s.author, s.post) not in judged and s.deleted is None]
        return found + await self._without_record([s for s in rest if s.living is None or s.archived])

    def _judge(self, sight: Sight) -> Difference[Entry] | None:
        """Judge what the store alone can tell."""
        entry = Entry(sight.author, sight.post)
        what = f"post {sight.post} in the timeline of user {sight.author}"
        if sight.deleted is not None:
            if sight.deleted > self._scope.watermark:
                return None
            cure: Cure = partial(self._remedies.unlist, entry, sight.deleted)
            return Difference(Kind.LISTED_DELETED, entry, f"{what}, deleted by number {sight.deleted}", cure)
        if sight.living is not None and sight.living.author != sight.author:
            cure = partial(self._remedies.unlist, entry, None)
            return Difference(Kind.LISTED_FOREIGN, entry, f"{what} is by user {sight.living.author}", cure)
        if sight.listed != sight.post and sight.living is not None and not sight.archived:
            cure = partial(self._remedies.place, entry)
            return Difference(Kind.MISPLACED, entry, f"{what} stands at {sight.listed}", cure)
        return None

    async def _without_record(self, sights: Sequence[Sight]) -> list[Difference[Entry]]:
        """Judge what needs the archive or the log: posts without a record, and those from below the floor."""
        if not sights:
            return []
        rows = await self._scope.rows([sight.post for sight in sights])
        logged = await self._scope.published(
            [s.post for s in sights if s.living is None and s.post not in (rows or {})]
        )
        found = []
        for sight in sights:
            post = sight.living or (rows or {}).get(sight.post) or logged.get(sight.post)
            if post is not None and post.author != sight.author:
                post = None
            found.append(self._missing(sight, post, known=rows is not None, has_row=sight.post in (rows or {})))
        return found

    def _missing(self, sight: Sight, post: Post | None, *, known: bool, has_row: bool) -> Difference[Entry]:
        entry = Entry(sight.author, sight.post)
        what = f"post {sight.post} in the timeline of user {sight.author}"
        cure: Cure | None = None
        if sight.archived and (post is not None or not known):
            what = f"{what}, whose archive floor is {sight.floor}"
            if known:
                cure = partial(self._remedies.archive, entry, None if has_row else post)
            return Difference(Kind.LISTED_ARCHIVED, entry, what, cure)
        if post is not None:
            return Difference(Kind.RECORD, entry, what, partial(self._remedies.rewrite, post))
        if not known:
            return Difference(Kind.RECORD, entry, f"{what}; the archive, where it may be, cannot be asked")
        return Difference(Kind.LOST, entry, what, partial(self._remedies.unlist, entry, None))


class Records:
    """From every post's record to its author's timeline or, below the archive floor, to the archive.

    For 500 records three round trips; one query of the archive for every archived post's author, and one for all.
    """

    part = Part.POSTS
    counts = pattern(keys.post)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._remedies = Remedies(scope)

    def subjects(self) -> AsyncIterator[list[int]]:
        """Go through all records."""
        return self._scope.owners(keys.post)

    async def compare(self, posts: Sequence[int]) -> list[Difference[int]]:
        """Find the records that no timeline and no archive accounts for."""
        records = await self._scope.records([post for post in posts if post <= self._scope.watermark])
        alive = {post: found for post, row in records.items() if (found := living(row)) is not None}
        damaged = {p: row for p, row in records.items() if row and "deleted" not in row and p not in alive}
        entries = [Entry(post.author, post.id) for post in alive.values()]
        sights = [s for s in await look(self._scope, entries, records) if s.listed is None]
        judged = [difference for sight in sights if (difference := self._judge(sight))]
        archived = [sight for sight in sights if sight.archived and sight.unlisted is None]
        return judged + await self._archived(archived) + await self._damaged(damaged)

    def _judge(self, sight: Sight) -> Difference[int] | None:
        """Judge what the store alone can tell."""
        what = f"post {sight.post} by user {sight.author}"
        if sight.unlisted is not None:
            if sight.unlisted > self._scope.watermark:
                return None
            cure: Cure = partial(self._remedies.bury, sight.post, sight.unlisted)
            return Difference(Kind.RESURRECTED, sight.post, f"{what}, deleted by number {sight.unlisted}", cure)
        if sight.archived:
            return None
        if sight.floor is None and self._scope.blind:
            what = f"{what}, of whose timeline nothing is left; the archive, which knows its floor, cannot be asked"
            return Difference(Kind.UNLISTED, sight.post, what)
        return Difference(
            Kind.UNLISTED, sight.post, what, partial(self._remedies.relist, Entry(sight.author, sight.post))
        )

    async def _archived(self, sights: Sequence[Sight]) -> list[Difference[int]]:
        """Judge records from below the archive floor: they need a row, and go once the archive has freed that far."""
        rows = await self._scope.rows([sight.post for sight in sights]) if sights else None
        if rows is None:
            return []
        floors = await self._scope.floors(sight.author for sight in sights)
        again = await self._scope.records([sight.post for sight in sights])
        found = []
        for sight in sights:
            post = living(again[sight.post])
            freed = sight.post <= floors[sight.author].freed
            what = f"post {sight.post} by user {sight.author}"
            if post is not None and post.id not in rows:
                cure: Cure = partial(self._add_row, post, freed=freed)
                found.append(Difference(Kind.ROW, sight.post, f"{what}, archived up to {sight.floor}", cure))
            elif post is not None and freed:
                found.append(Difference(Kind.LEFTOVER, sight.post, what, partial(self._remedies.free, sight.post)))
        return found

    async def _add_row(self, post: Post, *, freed: bool) -> bool:
        done = await self._scope.add_row(post)
        return done and (not freed or await self._remedies.free(post.id))

    async def _damaged(self, records: dict[int, dict[str, str]]) -> list[Difference[int]]:
        """Judge records that cannot be read, except those that a timeline lists: they are found from there."""
        if not records:
            return []
        known = await self._scope.published(list(records)) | dict(await self._scope.rows(records) or {})
        authors = {post: known[post].author for post in known} | {
            post: int(row["author"]) for post, row in records.items() if row.get("author", "").isdecimal()
        }
        listed = await self._scope.scores(keys.posts, [(author, post) for post, author in authors.items()])
        return [
            Difference(
                Kind.UNREADABLE,
                post,
                f"post {post}",
                partial(self._remedies.rewrite, known[post]) if post in known else None,
            )
            for post in records
            if post not in authors or listed[authors[post], post] is None
        ]


def fields(post: Post) -> list[Word]:
    """Give a post's record: fields and values by turns."""
    words: list[Word] = ["id", post.id, "author", post.author, "text", post.text]
    if post.platform is not None:
        words += ("platform", post.platform)
    if post.location is not None:
        words += ("latitude", post.location.latitude, "longitude", post.location.longitude)
    return words
