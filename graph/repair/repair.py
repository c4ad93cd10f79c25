"""Repair: compares derived data with its source and corrects the differences.

A repair can run while the server is in use. It compares only events up to the watermark at its start. A difference
counts only if a second comparison finds it again, after newer events have been projected. A correction never overwrites
a newer change: it carries an event number, or compares and sets in one script. A repair can be stopped at any time; the
next one continues.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from graph import keys
from graph.errors import ArchiveUnavailable
from graph.log.log import Log
from graph.projections.projections import Projections
from graph.repair.accounts import Logins, Profiles
from graph.repair.archived import ArchiveFloors, Counts, Rows
from graph.repair.events import LogEvents
from graph.repair.follows import Follows
from graph.repair.homes import HomeCaches
from graph.repair.posts import Listings, Records
from graph.repair.report import Difference, Kind, Part, Report
from graph.repair.scope import Scope, chunks
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

__all__ = ["Kind", "OnProgress", "Part", "Repair", "Report"]

S = TypeVar("S")

OnProgress: TypeAlias = Callable[[Part, int, int | None], None]
"""Called with a part, the number of keys compared, and the total number of keys or None if it is unknown."""

TIMEOUT_SECONDS = 2.0
POLL_SECONDS = 0.02
CORRECTIONS_AT_ONCE = 500
NO_ARCHIVE = "The store's older posts are in an archive, but no archive is configured."
WRONG_ARCHIVE = "The configured archive is not the one that holds the store's older posts."


class Comparison(Protocol[S]):
    """One comparison of one part: yields subjects in chunks, and can compare a subject again."""

    @property
    def part(self) -> Part:
        """The part that is compared."""
        ...

    @property
    def key_pattern(self) -> str | None:
        """The pattern of the scanned keys, or None if the progress is not measured in keys."""
        ...

    def subjects(self) -> AsyncIterator[list[S]]:
        """Yield the subjects to compare, in chunks. A subject may be yielded twice."""
        ...

    async def compare(self, subjects: Sequence[S]) -> list[Difference[S]]:
        """Return the differences of these subjects."""
        ...


class Repair:
    """Compares and corrects all derived data. Waits up to `timeout` seconds for new events to be projected."""

    def __init__(
        self,
        store: Store,
        log: Log,
        projections: Projections,
        archive: "Archive | None",
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._archive = archive
        self._timeout = self._remaining_timeout = timeout

    async def run(self, *, correct: bool, on_progress: OnProgress | None = None) -> Report:
        """Compare all parts and return the report. Correct the differences if `correct` is True.

        Each comparison scans all keys of the store, with one round trip per 1,000 keys; the comparison's class
        documents its other costs. Memory is limited to one chunk: 500 owners and about 10,000 members. Accounts and
        follows are compared before posts, and posts before home caches, so that one run corrects everything.
        """
        self._remaining_timeout = self._timeout
        waited = await self._wait_for_projection()
        watermark, last = await self._log.watermark(), await self._log.last()
        report = Report(watermark, last, correct)
        identity = await self._store.run("GET", keys.ARCHIVE)
        scope = Scope(self._store, self._log, self._archive, watermark, archived=identity is not None)
        await self._check_archive(scope, identity)
        self._remaining_timeout = self._timeout if waited else 0.0
        totals = await self._totals() if on_progress else Counter[str]()
        for comparison in comparisons(scope, self._projections):
            await self._run_comparison(comparison, scope, report, totals, on_progress)
        report.archive_error = scope.archive_error
        return report

    async def _check_archive(self, scope: Scope, identity: str | None) -> None:
        """Continue without the archive if it does not answer or belongs to another store."""
        try:
            if self._archive is None and identity is not None:
                scope.drop_archive(NO_ARCHIVE)
            elif self._archive is not None and identity not in (None, await self._archive.identity()):
                scope.drop_archive(WRONG_ARCHIVE)
        except ArchiveUnavailable as outage:
            scope.drop_archive(outage.reason)

    async def _run_comparison(
        self,
        comparison: Comparison[Any],
        scope: Scope,
        report: Report,
        totals: Counter[str],
        on_progress: OnProgress | None,
    ) -> None:
        scope.scanned = 0
        try:
            async for chunk in comparison.subjects():
                report.compared[comparison.part] += len(chunk)
                differences = await self._differences(comparison, scope, chunk)
                report.add(differences, await self._correct(scope, differences, correct=report.corrects))
                if on_progress:
                    total = totals[comparison.key_pattern.partition("{")[0]] if comparison.key_pattern else None
                    on_progress(comparison.part, scope.scanned, total)
        except ArchiveUnavailable as outage:
            scope.drop_archive(outage.reason)

    async def _differences(self, comparison: Comparison[S], scope: Scope, chunk: Sequence[S]) -> list[Difference[S]]:
        """Return the subjects that differ in two comparisons."""
        found = await self._compare(comparison, scope, chunk)
        if found:
            await self._wait_for_projection()
            found = await self._compare(comparison, scope, [difference.subject for difference in found])
        return found

    async def _compare(self, comparison: Comparison[S], scope: Scope, subjects: Sequence[S]) -> list[Difference[S]]:
        try:
            return await comparison.compare(subjects)
        except ArchiveUnavailable as outage:
            scope.drop_archive(outage.reason)
            return await comparison.compare(subjects)

    async def _correct(self, scope: Scope, differences: Sequence[Difference[S]], *, correct: bool) -> list[bool]:
        """Correct differences, 500 at once so that they share round trips. Return for each whether it was resolved."""

        async def correct_one(difference: Difference[S]) -> bool:
            try:
                return difference.correct is not None and await difference.correct()
            except ArchiveUnavailable as outage:
                scope.drop_archive(outage.reason)
                return False

        if not correct:
            return [False] * len(differences)
        outcomes: list[bool] = []
        for chunk in chunks(differences, CORRECTIONS_AT_ONCE):
            for outcome in await asyncio.gather(*map(correct_one, chunk), return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                outcomes.append(outcome)
        return outcomes

    async def _wait_for_projection(self) -> bool:
        """Wait until every event now in the log is projected. Return False after the timeout."""
        last = await self._log.last()
        try:
            async with asyncio.timeout(self._remaining_timeout):
                while await self._log.watermark() < last:  # noqa: ASYNC110 - the store sends no notification
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _totals(self) -> Counter[str]:
        """Return the number of keys of each kind. One round trip per 1,000 keys."""
        totals: Counter[str] = Counter()
        async for found in self._store.scan("*"):
            totals.update(key.partition("{")[0] for key in found if key.endswith("}"))
        return totals


def comparisons(scope: Scope, projections: Projections) -> list[Comparison[Any]]:
    """Return all comparisons. Each one depends only on data that the ones before have corrected."""
    return [
        Logins(scope),
        Profiles(scope),
        LogEvents(scope, projections, Part.ACCOUNTS),
        Follows(scope, keys.following),
        Follows(scope, keys.followers),
        LogEvents(scope, projections, Part.FOLLOWS),
        ArchiveFloors(scope),
        Listings(scope),
        Records(scope),
        LogEvents(scope, projections, Part.POSTS),
        Rows(scope),
        Counts(scope),
        HomeCaches(scope),
    ]
