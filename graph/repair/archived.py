"""Comparison of the archive with the store: floors, rows, and the count of each author's archived posts.

The archiver may run at the same time. Posts between the store's floor and the archive's floor belong to an unfinished
move: a repair only makes sure that the archiver will finish it.
"""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from graph import keys
from graph.archive.floors import Floors
from graph.model import Post
from graph.paging import Window
from graph.repair.posts import Entry, PostCorrections, PostState, read_states
from graph.repair.report import Correction, Difference, Kind, Part
from graph.repair.scope import ATTEMPTS, Scope, live_post, pattern
from graph.store.commands import script

AUTHORS_AT_ONCE = 50
ROWS_AT_ONCE = 100
ROWS_TO_COUNT = 1000


async def archived_authors(scope: Scope) -> AsyncIterator[list[int]]:
    """Yield the authors with rows or floors in the archive, 50 at a time. One query per chunk."""
    after = -1
    while scope.archive is not None:
        authors = await scope.archive.scan(after, AUTHORS_AT_ONCE)
        if not authors:
            return
        after = authors[-1]
        scope.scanned += len(authors)
        yield authors


class ArchiveFloors:
    """Compares each author's floor in the store with the floors in the archive, and finds unfinished moves.

    For authors with archived posts: two queries each, and three round trips per 50 authors.
    """

    part = Part.ARCHIVE
    key_pattern = pattern(keys.posts)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the authors whose timelines have archived posts or no floor, then the authors only in the archive."""
        async for authors in self._scope.owners(keys.posts):
            floors = await self._floors(authors)
            yield [author for author in floors if floors[author] != 0]
        async for authors in archived_authors(self._scope):
            floors = await self._floors(authors)
            sizes = await self._scope.send([("ZCARD", keys.posts(author)) for author in authors])
            yield [a for a, size in zip(authors, sizes, strict=True) if floors[a] == 0 or not size]

    async def _floors(self, authors: Sequence[int]) -> dict[int, int | None]:
        scores = await self._scope.scores(keys.posts, [(author, "f") for author in authors])
        return {author: floor for (author, _), floor in scores.items()}

    async def compare(self, authors: Sequence[int]) -> list[Difference[int]]:
        """Return the floors that contradict each other, and the unfinished moves that are not scheduled.

        For every author, freed <= store's floor <= archive's floor. The store's floor is read before and after the
        archive's floors, so that a move in between is not reported as a difference.
        """
        if self._scope.archive is None:
            return [] if self._scope.archive_unreadable else await self._without_archive(authors)
        before = await self._floors(authors)
        archive = await self._scope.floors(before)
        after = await self._floors(authors)
        sizes = await self._scope.send([("ZCARD", keys.posts(author)) for author in before])
        found = []
        for (author, floor), size in zip(before.items(), sizes, strict=True):
            lost = after[author] is None and (size or archive[author].moved)
            if (floor or 0) > archive[author].moved:
                found.append(self._archive_floor_low(author, floor or 0, archive[author]))
            elif lost or (after[author] or 0) < archive[author].freed:
                found.append(self._store_floor_low(author, after[author], archive[author]))
        checked = {difference.subject for difference in found}
        moves = {
            a: archive[a] for a in before if a not in checked and archive[a] != Floors(after[a] or 0, after[a] or 0)
        }
        return found + await self._unscheduled(moves, after) + await self._missing_rows(moves, after)

    async def _without_archive(self, authors: Sequence[int]) -> list[Difference[int]]:
        floors = await self._floors(authors)
        return [self._store_floor_low(author, None, Floors()) for author, floor in floors.items() if floor is None]

    def _archive_floor_low(self, author: int, floor: int, archive: Floors) -> Difference[int]:
        async def correct() -> bool:
            if not self._scope.archived or not await self._scope.raise_floor(author, archive.moved, floor):
                return False
            return await self._schedule(author, floor)

        text = f"user {author}: the store's floor is {floor}, the archive's floor is {archive.moved}"
        return Difference(Kind.ARCHIVE_FLOOR_LOW, author, text, correct)

    def _store_floor_low(self, author: int, floor: int | None, archive: Floors) -> Difference[int]:
        async def correct() -> bool:
            call = script("repair_floor").call([keys.posts(author)], archive.freed, archive.moved)
            await self._scope.send([call])
            return not archive.moved or await self._schedule(author, archive.moved)

        own = "missing" if floor is None else str(floor)
        text = f"user {author}: the store's floor is {own}, the archive's floor is {archive.moved}"
        text = f"{text}, its freed floor is {archive.freed}"
        return Difference(Kind.STORE_FLOOR_LOW, author, text, correct)

    async def _unscheduled(self, moves: dict[int, Floors], floors: dict[int, int | None]) -> list[Difference[int]]:
        """Return moves that are not in the archiver's work set and made no progress since the floors were read."""
        scores = await self._scope.send([("ZSCORE", keys.ARCHIVABLE, author) for author in moves])
        idle = [author for author, score in zip(moves, scores, strict=True) if score is None]
        again = await self._scope.floors(idle)
        found = []
        for author in idle:
            if again[author] == moves[author]:
                floor = floors[author] or 0
                text = f"user {author}: the archive's floor is {again[author].moved}, the store's floor is {floor}"
                text = f"{text}, the freed floor is {again[author].freed}"
                found.append(Difference(Kind.MOVE_UNFINISHED, author, text, partial(self._schedule, author, floor)))
        return found

    async def _schedule(self, author: int, floor: int) -> bool:
        """Add an author to the archiver's work set."""
        await self._scope.send([("ZADD", keys.ARCHIVABLE, "NX", floor, author)])
        return True

    async def _missing_rows(self, moves: dict[int, Floors], floors: dict[int, int | None]) -> list[Difference[int]]:
        """Return hot posts between the two floors that have no row. Without the rows, the move never ends."""
        found: list[Difference[int]] = []
        for author, archive in moves.items():
            floor = floors[author] or 0
            hot = await self._scope.send([("ZRANGE", keys.posts(author), f"({floor}", archive.moved, "BYSCORE")])
            posts = [int(post) for post in hot[0] if post.isdecimal()]
            rows = await self._scope.rows(posts) if posts else {}
            if rows is None:
                return found
            records = await self._scope.records([post for post in posts if post not in rows])
            now = await self._floors([author])
            for post in filter(None, map(live_post, records.values())):
                if now[author] == floors[author]:
                    text = f"post {post.id} by user {author}, in an unfinished move"
                    found.append(Difference(Kind.ROW_MISSING, author, text, partial(self._scope.add_row, post)))
        return found


class Rows:
    """Compares each row of the archive with the store: finds rows of deleted posts, and rows that are the last copy.

    Per 50 authors: one query per 100 rows of each author, and three round trips. Differences take one more query.
    """

    part = Part.ARCHIVE
    key_pattern = None

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._corrections = PostCorrections(scope)

    async def subjects(self) -> AsyncIterator[list[Entry]]:
        """Yield all rows."""
        async for authors in archived_authors(self._scope):
            lows = dict.fromkeys(authors, 0)
            while lows and self._scope.archive is not None:
                windows = [(author, Window(ROWS_AT_ONCE, forward=False, low=low)) for author, low in lows.items()]
                slices = dict(zip(lows, await self._scope.archive.slices(windows), strict=True))
                yield [Entry(author, row.id) for author, rows in slices.items() for row in rows]
                lows = {author: rows[-1].id for author, rows in slices.items() if len(rows) == ROWS_AT_ONCE}

    async def compare(self, entries: Sequence[Entry]) -> list[Difference[Entry]]:
        """Return the rows of deleted posts, and the rows of posts that are missing in the store.

        The rows are read last, because the archiver may delete them in the meantime.
        """
        if self._scope.archive is None:
            return []
        entries = [entry for entry in dict.fromkeys(entries) if entry.post <= self._scope.watermark]
        records = await self._scope.records([entry.post for entry in entries])
        states = await read_states(self._scope, entries, records)
        deleted = [s for s in states if s.deleted is not None and s.deleted <= self._scope.watermark]
        pending = await self._scope.send([("ZSCORE", keys.DELETED, state.post) for state in deleted])
        deleted = [state for state, score in zip(deleted, pending, strict=True) if score is None]
        orphans = [s for s in states if s.deleted is None and s.listed is None and not s.archived and s.live is None]
        rows = await self._scope.rows({state.post for state in (*deleted, *orphans)}) or {}
        floors = await self._scope.floors(state.author for state in (*deleted, *orphans) if state.post in rows)
        return [
            self._difference(state, rows[state.post])
            for state in (*deleted, *orphans)
            if state.post in rows and (state.archived or state.post > floors[state.author].moved)
        ]

    def _difference(self, state: PostState, row: Post) -> Difference[Entry]:
        entry = Entry(state.author, state.post)
        text = f"post {state.post} by user {state.author}"
        if state.deleted is None:
            correct: Correction | None = partial(self._corrections.write_record, row) if self._scope.archived else None
            return Difference(Kind.ROW_ORPHANED, entry, text, correct)
        correct = partial(self._delete, entry, state.deleted)
        return Difference(Kind.DELETED_POST_HAS_ROW, entry, f"{text}, deleted by event {state.deleted}", correct)

    async def _delete(self, entry: Entry, deletion: int) -> bool:
        """Delete a row. If the deletion has not changed the author's count yet, change it."""
        if self._scope.archive is None:
            return False
        await self._corrections.unlist(entry, deletion)
        await self._scope.archive.delete([entry.post])
        return True


class Counts:
    """Compares each author's count of archived posts with the rows.

    One query per author, and one round trip per 50 authors. If the count differs or deletions are pending, all rows of
    the author are read.
    """

    part = Part.COUNTS
    key_pattern = pattern(keys.cold)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield the authors in the archive, then the authors that have only a count."""
        async for authors in archived_authors(self._scope):
            yield authors
        async for authors in self._scope.owners(keys.cold):
            if self._scope.archive is None:
                return
            yield [author for author in authors if await self._scope.archive.scan(author - 1, 1) != [author]]

    async def compare(self, authors: Sequence[int]) -> list[Difference[int]]:
        """Return the wrong counts. A count that changes during the comparison is compared again, up to three times.

        A count is skipped if the author's floor is wrong.
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
        """Return the floors and counts of authors."""
        floors = await self._scope.scores(keys.posts, [(author, "f") for author in authors])
        cold = await self._scope.send([("GET", keys.cold(author)) for author in authors])
        return {author: (floors[author, "f"] or 0, count) for author, count in zip(authors, cold, strict=True)}

    async def _count(self, author: int, floor: int, cold: str | None, *, pending: bool) -> int:
        """Return the number of an author's archived posts, without posts whose deletion the store has counted."""
        if self._scope.archive is None:
            return int(cold or 0)
        rows = await self._scope.archive.count(author, floor)
        if rows == int(cold or 0) and not pending:
            return rows
        count, low = 0, 0
        while True:
            window = Window(ROWS_TO_COUNT, forward=False, low=low, high=floor + 1)
            [rows_read] = await self._scope.archive.slices([(author, window)])
            count += await self._count_live(author, rows_read)
            if len(rows_read) < ROWS_TO_COUNT:
                return count
            low = rows_read[-1].id

    async def _count_live(self, author: int, rows: Sequence[Post]) -> int:
        entries = [Entry(author, row.id) for row in rows]
        states = await read_states(self._scope, entries, await self._scope.records([row.id for row in rows]))
        return sum(
            s.unlisted is None and not (s.tombstone is not None and s.tombstone <= s.unlisted_floor) for s in states
        )

    def _difference(self, author: int, floor: int, cold: str | None, count: int) -> Difference[int]:
        async def correct() -> bool:
            names = [keys.posts(author), keys.cold(author)]
            [done] = await self._scope.send([script("repair_count").call(names, floor, cold or "", count)])
            return bool(done)

        text = f"user {author}: the count is {cold or 0}, but the archive has {count} posts"
        return Difference(Kind.COUNT_WRONG, author, text, correct)
