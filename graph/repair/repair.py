"""Repair: compares everything that is derived with what it is derived from, and mends what differs.

It runs while the system serves. Only events up to the watermark, as it stood in the beginning, count; what differs
is looked at once more when the events that came meanwhile are projected, and only what differs twice is a difference.
Every remedy carries an event's number, or is a comparison and a change in one step, so that whatever happens meanwhile
wins. Breaking off is harmless: the next repair finds what is left.
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
from graph.repair.archived import Counts, Rows, Tiers
from graph.repair.follows import Follows
from graph.repair.homes import Homes
from graph.repair.logged import Logged
from graph.repair.posts import Listed, Records
from graph.repair.report import Difference, Kind, Part, Report
from graph.repair.scope import Scope, parts
from graph.store.store import Store

if TYPE_CHECKING:
    from graph.archive.archive import Archive

__all__ = ["Advance", "Kind", "Part", "Repair", "Report"]

S = TypeVar("S")

Advance: TypeAlias = Callable[[Part, int, int | None], None]
"""Is told how far a repair has come with a part: keys done, and keys in total where that is known."""

PATIENCE_SECONDS = 2.0
POLL_SECONDS = 0.02
CURES_AT_ONCE = 500
NO_ARCHIVE = "The store has older posts in an archive, but this process was given none."
OTHER_ARCHIVE = "The store's older posts are in another archive than this one."


class Walk(Protocol[S]):
    """One way through one part: subjects in chunks, and a comparison that can be made again for some of them."""

    @property
    def part(self) -> Part:
        """What is compared."""
        ...

    @property
    def counts(self) -> str | None:
        """The pattern of the keys that it goes through, if these are its measure."""
        ...

    def subjects(self) -> AsyncIterator[list[S]]:
        """Yield what to compare, in chunks; the same may come twice."""
        ...

    async def compare(self, subjects: Sequence[S]) -> list[Difference[S]]:
        """Find what differs."""
        ...


class Repair:
    """Compares, and mends, all that is derived. `patience` is how many seconds it waits for events to be projected."""

    def __init__(
        self,
        store: Store,
        log: Log,
        projections: Projections,
        archive: "Archive | None",
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._store = store
        self._log = log
        self._projections = projections
        self._archive = archive
        self._patience = self._waits = patience

    async def run(self, *, mend: bool, advance: Advance | None = None) -> Report:
        """Go through everything; without `mend`, change nothing.

        Each part scans all keys of the store, one round trip for about every thousand; its class tells what it costs
        beside that. Memory is bounded by a chunk: some hundred owners and about 10,000 of their members. Accounts and
        follows come before posts, and posts before what is made of them, so that one run mends all.
        """
        self._waits = self._patience
        waited = await self._settle()
        mark, last = await self._log.watermark(), await self._log.last()
        report = Report(mark, last, mend)
        owner = await self._store.run("GET", keys.ARCHIVE)
        scope = Scope(self._store, self._log, self._archive, mark, archived=owner is not None)
        await self._check_archive(scope, owner)
        self._waits = self._patience if waited else 0.0
        totals = await self._totals() if advance else Counter[str]()
        for walk in walks(scope, self._projections):
            await self._go(walk, scope, report, totals, advance)
        report.skipped = scope.trouble
        return report

    async def _check_archive(self, scope: Scope, owner: str | None) -> None:
        """Go on without the archive if it does not answer, or is not this store's."""
        try:
            if self._archive is None and owner is not None:
                scope.lose(NO_ARCHIVE)
            elif self._archive is not None and owner not in (None, await self._archive.identity()):
                scope.lose(OTHER_ARCHIVE)
        except ArchiveUnavailable as outage:
            scope.lose(outage.reason)

    async def _go(
        self, walk: Walk[Any], scope: Scope, report: Report, totals: Counter[str], advance: Advance | None
    ) -> None:
        scope.seen = 0
        try:
            async for chunk in walk.subjects():
                report.compared[walk.part] += len(chunk)
                differences = await self._differences(walk, scope, chunk)
                report.add(differences, await self._cure(scope, differences, mend=report.mending))
                if advance:
                    total = totals[walk.counts.partition("{")[0]] if walk.counts else None
                    advance(walk.part, scope.seen, total)
        except ArchiveUnavailable as outage:
            scope.lose(outage.reason)

    async def _differences(self, walk: Walk[S], scope: Scope, chunk: Sequence[S]) -> list[Difference[S]]:
        """Compare, and compare once more what differs."""
        found = await self._compare(walk, scope, chunk)
        if found:
            await self._settle()
            found = await self._compare(walk, scope, [difference.subject for difference in found])
        return found

    async def _compare(self, walk: Walk[S], scope: Scope, subjects: Sequence[S]) -> list[Difference[S]]:
        try:
            return await walk.compare(subjects)
        except ArchiveUnavailable as outage:
            scope.lose(outage.reason)
            return await walk.compare(subjects)

    async def _cure(self, scope: Scope, differences: Sequence[Difference[S]], *, mend: bool) -> list[bool]:
        """Mend differences, 500 at once, whose steps share round trips; tell which are gone."""

        async def cure(difference: Difference[S]) -> bool:
            try:
                return difference.cure is not None and await difference.cure()
            except ArchiveUnavailable as outage:
                scope.lose(outage.reason)
                return False

        if not mend:
            return [False] * len(differences)
        outcomes: list[bool] = []
        for some in parts(differences, CURES_AT_ONCE):
            for outcome in await asyncio.gather(*map(cure, some), return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                outcomes.append(outcome)
        return outcomes

    async def _settle(self) -> bool:
        """Wait until all that is in the log now is projected; False if that takes longer than there is patience."""
        last = await self._log.last()
        try:
            async with asyncio.timeout(self._waits):
                while await self._log.watermark() < last:  # noqa: ASYNC110 - the store tells nobody when it changes
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _totals(self) -> Counter[str]:
        """Count the keys of each kind, for whoever watches. One round trip for about every thousand."""
        totals: Counter[str] = Counter()
        async for found in self._store.scan("*"):
            totals.update(key.partition("{")[0] for key in found if key.endswith("}"))
        return totals


def walks(scope: Scope, projections: Projections) -> list[Walk[Any]]:
    """Give all ways through all parts, in the order in which they build on each other."""
    return [
        Logins(scope),
        Profiles(scope),
        Logged(scope, projections, Part.ACCOUNTS),
        Follows(scope, keys.following),
        Follows(scope, keys.followers),
        Logged(scope, projections, Part.FOLLOWS),
        Tiers(scope),
        Listed(scope),
        Records(scope),
        Logged(scope, projections, Part.POSTS),
        Rows(scope),
        Counts(scope),
        Homes(scope),
    ]
