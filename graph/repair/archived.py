"""The archive: its floors and the store's agree, its rows are posts that live, and every author's count is right.

The archiver may be at work all the while. What lies between the store's floor and the archive's belongs to it; a
repair only sees that it is at hand.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from graph import keys
from graph.archive.floors import Floors
from graph.model import Post
from graph.paging import Window
from graph.repair.posts import Entry, Remedies, Sight, look
from graph.repair.report import Cure, Difference, Kind, Part
from graph.repair.scope import ATTEMPTS, Scope, living, pattern
from graph.store.commands import script

AUTHORS_AT_ONCE = 50
ROWS_AT_ONCE = 100
ROWS_TO_COUNT = 1000


async def archived_authors(scope: Scope) -> AsyncIterator[list[int]]:
    """Yield the authors that the archive knows, 50 at a time. One query each time."""
    after = -1
    while scope.archive is not None:
        authors = await scope.archive.scan(after, AUTHORS_AT_ONCE)
        if not authors:
            return
        after = authors[-1]
        scope.seen += len(authors)
        yield authors


class Tiers:
    """Every author's floor in the store against the two in the archive, and the moves that are under way.

    For authors with archived posts two queries each, and three round trips for 50 of them.
    """

    part = Part.ARCHIVE
    counts = pattern(keys.posts)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Go through the timelines with archived posts, or without any floor; then what the archive alone knows."""
        async for authors in self._scope.owners(keys.posts):
            floors = await self._floors(authors)
            yield [author for author in floors if floors[author] != 0]
        async for authors in archived_authors(self._scope):
            floors = await self._floors(authors)
            sizes = await self._scope.ask([("ZCARD", keys.posts(author)) for author in authors])
            yield [a for a, size in zip(authors, sizes, strict=True) if floors[a] == 0 or not size]

    async def _floors(self, authors: Sequence[int]) -> dict[int, int | None]:
        scores = await self._scope.scores(keys.posts, [(author, "f") for author in authors])
        return {author: floor for (author, _), floor in scores.items()}

    async def compare(self, authors: Sequence[int]) -> list[Difference[int]]:
        """Find the floors that cannot be, and moves that nobody would go on with.

        A floor of the archive is never below the store's, and what it has freed never above: each is read before and
        after the other.
        """
        if self._scope.archive is None:
            return [] if self._scope.blind else await self._without_archive(authors)
        before = await self._floors(authors)
        archive = await self._scope.floors(before)
        after = await self._floors(authors)
        sizes = await self._scope.ask([("ZCARD", keys.posts(author)) for author in before])
        found = []
        for (author, floor), size in zip(before.items(), sizes, strict=True):
            lost = after[author] is None and (size or archive[author].moved)
            if (floor or 0) > archive[author].moved:
                found.append(self._behind(author, floor or 0, archive[author]))
            elif lost or (after[author] or 0) < archive[author].freed:
                found.append(self._below(author, after[author], archive[author]))
        judged = {difference.subject for difference in found}
        moves = {
            a: archive[a] for a in before if a not in judged and archive[a] != Floors(after[a] or 0, after[a] or 0)
        }
        return found + await self._unfinished(moves, after) + await self._stuck(moves, after)

    async def _without_archive(self, authors: Sequence[int]) -> list[Difference[int]]:
        floors = await self._floors(authors)
        return [self._below(author, None, Floors()) for author, floor in floors.items() if floor is None]

    def _behind(self, author: int, floor: int, archive: Floors) -> Difference[int]:
        async def cure() -> bool:
            if not self._scope.archived or not await self._scope.raise_floor(author, archive.moved, floor):
                return False
            return await self._note(author, floor)

        what = (
            f"posts of user {author} were moved up to {floor}, of which the archive knows those up to {archive.moved}"
        )
        return Difference(Kind.BEHIND, author, what, cure)

    def _below(self, author: int, floor: int | None, archive: Floors) -> Difference[int]:
        async def cure() -> bool:
            call = script("repair_floor").call([keys.posts(author)], archive.freed, archive.moved)
            await self._scope.ask([call])
            return not archive.moved or await self._note(author, archive.moved)

        has = "no floor" if floor is None else f"the floor {floor}"
        what = f"the timeline of user {author} has {has}, the archive {archive.moved}, freed {archive.freed}"
        return Difference(Kind.FLOOR, author, what, cure)

    async def _unfinished(self, moves: dict[int, Floors], floors: dict[int, int | None]) -> list[Difference[int]]:
        """Find moves that are not noted, and did not go on while that was looked up."""
        noted = await self._scope.ask([("ZSCORE", keys.ARCHIVABLE, author) for author in moves])
        idle = [author for author, note in zip(moves, noted, strict=True) if note is None]
        again = await self._scope.floors(idle)
        found = []
        for author in idle:
            if again[author] == moves[author]:
                floor = floors[author] or 0
                what = f"posts of user {author}: copied up to {again[author].moved}, moved up to {floor}"
                what = f"{what}, freed up to {again[author].freed}"
                found.append(Difference(Kind.UNFINISHED, author, what, partial(self._note, author, floor)))
        return found

    async def _note(self, author: int, floor: int) -> bool:
        """Let the archiver look at an author."""
        await self._scope.ask([("ZADD", keys.ARCHIVABLE, "NX", floor, author)])
        return True

    async def _stuck(self, moves: dict[int, Floors], floors: dict[int, int | None]) -> list[Difference[int]]:
        """Find hot posts that a move must take along but that have no row: without it, the move never ends."""
        found: list[Difference[int]] = []
        for author, archive in moves.items():
            floor = floors[author] or 0
            hot = await self._scope.ask([("ZRANGE", keys.posts(author), f"({floor}", archive.moved, "BYSCORE")])
            posts = [int(post) for post in hot[0] if post.isdecimal()]
            rows = await self._scope.rows(posts) if posts else {}
            if rows is None:
                return found
            records = await self._scope.records([post for post in posts if post not in rows])
            now = await self._floors([author])
            for post in filter(None, map(living, records.values())):
                if now[author] == floors[author]:
                    what = f"post {post.id} by user {author}, on its way into the archive"
                    found.append(Difference(Kind.ROW, author, what, partial(self._scope.add_row, post)))
        return found


class Rows:
    """From every row of the archive to the store: no row is that of a deleted post, or all that is left of a hot one.

    For 50 authors one query for every 100 rows of each, and three round trips; one query more where rows differ.
    """

    part = Part.ARCHIVE
    counts = None

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._remedies = Remedies(scope)

    async def subjects(self) -> AsyncIterator[list[Entry]]:
        """Go through all rows."""
        async for authors in archived_authors(self._scope):
            lows = dict.fromkeys(authors, 0)
            while lows and self._scope.archive is not None:
                windows = [(author, Window(ROWS_AT_ONCE, forward=False, low=low)) for author, low in lows.items()]
                slices = dict(zip(lows, await self._scope.archive.slices(windows), strict=True))
                yield [Entry(author, row.id) for author, rows in slices.items() for row in rows]
                lows = {author: rows[-1].id for author, rows in slices.items() if len(rows) == ROWS_AT_ONCE}

    async def compare(self, entries: Sequence[Entry]) -> list[Difference[Entry]]:
        """Find the rows that should not be there, or not alone. They are read last: the archiver may delete them."""
        if self._scope.archive is None:
            return []
        entries = [entry for entry in dict.fromkeys(entries) if entry.post <= self._scope.watermark]
        records = await self._scope.records([entry.post for entry in entries])
        sights = await look(self._scope, entries, records)
        deleted = [s for s in sights if s.deleted is not None and s.deleted <= self._scope.watermark]
        pending = await self._scope.ask([("ZSCORE", keys.DELETED, sight.post) for sight in deleted])
        deleted = [sight for sight, note in zip(deleted, pending, strict=True) if note is None]
        strays = [s for s in sights if s.deleted is None and s.listed is None and not s.archived and s.living is None]
        rows = await self._scope.rows({sight.post for sight in (*deleted, *strays)}) or {}
        floors = await self._scope.floors(sight.author for sight in (*deleted, *strays) if sight.post in rows)
        return [
            self._difference(sight, rows[sight.post])
            for sight in (*deleted, *strays)
            if sight.post in rows and (sight.archived or sight.post > floors[sight.author].moved)
        ]

    def _difference(self, sight: Sight, row: Post) -> Difference[Entry]:
        entry = Entry(sight.author, sight.post)
        what = f"post {sight.post} by user {sight.author}"
        if sight.deleted is None:
            cure: Cure | None = partial(self._remedies.rewrite, row) if self._scope.archived else None
            return Difference(Kind.STRAY_ROW, entry, what, cure)
        cure = partial(self._delete, entry, sight.deleted)
        return Difference(Kind.DELETED_ROW, entry, f"{what}, deleted by number {sight.deleted}", cure)

    async def _delete(self, entry: Entry, deletion: int) -> bool:
        """Delete a row, and count the deletion if nobody has."""
        if self._scope.archive is None:
            return False
        await self._remedies.unlist(entry, deletion)
        await self._scope.archive.delete([entry.post])
        return True


class Counts:
    """Every author's count of archived posts against the rows.

    One query an author and a round trip for 50; where that differs or deletions are pending, all rows of the author.
    """

    part = Part.COUNTS
    counts = pattern(keys.cold)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Go through the authors with something in the archive, then through those with nothing there but a count."""
        async for authors in archived_authors(self._scope):
            yield authors
        async for authors in self._scope.owners(keys.cold):
            if self._scope.archive is None:
                return
            yield [author for author in authors if await self._scope.archive.scan(author - 1, 1) != [author]]

    async def compare(self, authors: Sequence[int]) -> list[Difference[int]]:
        """Find the wrong counts; one that changes while it is checked is checked again, up to three times.

        Where the floor is wrong, the count cannot be judged.
        """
        found: list[Difference[int]] = []
        wanted = list(dict.fromkeys(authors))
        for _ in range(ATTEMPTS):
            before = await self._read(wanted)
            pending = bool(await self._scope.store.run("ZCARD", keys.DELETED))
            counts = {author: await self._count(author, *before[author], pending=pending) for author in wanted}
            after = await self._read(wanted)
            wrong = [a for a in wanted if after[a] == before[a] and counts[a] != int(before[a][1] or 0)]
            floors = await self._scope.floors(wrong)
            found += [
                self._difference(author, *before[author], counts[author])
                for author in wrong
                if before[author][0] >= floors[author].freed
            ]
            wanted = [author for author in wanted if after[author] != before[author]]
        return found

    async def _read(self, authors: Sequence[int]) -> dict[int, tuple[int, str | None]]:
        """Read authors' floors and counts."""
        floors = await self._scope.scores(keys.posts, [(author, "f") for author in authors])
        cold = await self._scope.ask([("GET", keys.cold(author)) for author in authors])
        return {author: (floors[author, "f"] or 0, count) for author, count in zip(authors, cold, strict=True)}

    async def _count(self, author: int, floor: int, cold: str | None, *, pending: bool) -> int:
        """Count an author's archived posts, without those of which the store has counted the deletion."""
        if self._scope.archive is None:
            return int(cold or 0)
        rows = await self._scope.archive.count(author, floor)
        if rows == int(cold or 0) and not pending:
            return rows
        count, low = 0, 0
        while True:
            window = Window(ROWS_TO_COUNT, forward=False, low=low, high=floor + 1)
            [some] = await self._scope.archive.slices([(author, window)])
            count += await self._living(author, some)
            if len(some) < ROWS_TO_COUNT:
                return count
            low = some[-1].id

    async def _living(self, author: int, rows: Sequence[Post]) -> int:
        entries = [Entry(author, row.id) for row in rows]
        sights = await look(self._scope, entries, await self._scope.records([row.id for row in rows]))
        return sum(s.unlisted is None and not (s.tombstone is not None and s.tombstone <= s.undone) for s in sights)

    def _difference(self, author: int, floor: int, cold: str | None, count: int) -> Difference[int]:
        async def cure() -> bool:
            names = [keys.posts(author), keys.cold(author)]
            [done] = await self._scope.ask([script("repair_count").call(names, floor, cold or "", count)])
            return bool(done)

        what = f"user {author} has {count} archived posts, not {cold or 0}"
        return Difference(Kind.COUNT, author, what, cure)
