"""Repair: compares the store with the archive, and corrects the differences.

For a group of users at a time, the events in the archive are folded into the content that these users' keys must have,
which is compared with the store. Events are never projected again. A repair can run while the server is in use: data
that is newer than the archive is not compared, a difference counts only if a second comparison finds it again, and a
correction changes data only if the data is still as it was found. A repair can be stopped at any time: its corrections
remain, and the next repair compares everything again.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from graph import keys
from graph.binding import Binding
from graph.chunks import chunks
from graph.commit import Commit
from graph.log.log import Log
from graph.log.moderation_events import StoreRepaired
from graph.repair.accounts import AccountComparison
from graph.repair.blocks import BlockComparison, BlockerComparison
from graph.repair.follows import FollowerComparison, FollowingComparison
from graph.repair.homes import HomeComparison
from graph.repair.likes import LikedPosts, LikesOfPosts
from graph.repair.lists import ListComparison
from graph.repair.notifications import NotificationComparison
from graph.repair.pairs import PairComparison
from graph.repair.pending import certain
from graph.repair.public_posts import DecisionComparison, PublicPostComparison
from graph.repair.records import RecordComparison
from graph.repair.report import Difference, RepairReport
from graph.repair.reposts import RepostedComparison
from graph.repair.scope import Comparison, Scope
from graph.repair.timelines import Replied, TimelineComparison
from graph.repair.under_posts import QuoteComparison, ReplyComparison, RepostComparison
from graph.store.store import Store
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

__all__ = ["OnProgress", "Repair", "RepairReport"]

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of a part, the number of keys compared so far, and the total number of keys."""

TIMEOUT_SECONDS = 3.0
POLL_SECONDS = 0.02
PAUSE_SECONDS = 0.1
CORRECTIONS_AT_ONCE = 500
COMPARISONS: Sequence[Callable[[Scope], Comparison]] = (
    *(
        AccountComparison,
        BlockComparison,
        BlockerComparison,
        FollowingComparison,
        FollowerComparison,
        PairComparison,
    ),
    *(
        TimelineComparison,
        Replied,
        RecordComparison,
        RepostedComparison,
        ReplyComparison,
        RepostComparison,
        QuoteComparison,
        DecisionComparison,
        PublicPostComparison,
    ),
    *(LikesOfPosts, LikedPosts, ListComparison, NotificationComparison, HomeComparison),
)
"""All comparisons, in order. Each one depends only on data that earlier ones have corrected."""


@dataclass(slots=True)
class Repair:
    """Compares and corrects everything in the store that is derived from events, and the home caches.

    Waits up to `timeout` seconds until new events are projected and archived. Runs the `comparisons` in order.
    """

    store: Store
    log: Log
    archive: "Archive"
    binding: Binding
    commit: Commit
    tuning: Tuning
    timeout: float = TIMEOUT_SECONDS
    comparisons: Sequence[Callable[[Scope], Comparison]] = COMPARISONS

    async def run(
        self, *, correct: bool, on_progress: OnProgress | None = None, announces: bool = False
    ) -> RepairReport:
        """Compare everything and return the report. Correct the differences if `correct` is True.

        Live streams send a Gap at the end of a repair that corrected something. With `announces`, a correcting repair
        always sends one, because an earlier, interrupted repair may have corrected something.

        Reads each event in the archive once or twice, and scans the keys of the store a few times, with one round trip
        per 1,000 keys; the comparisons document their other costs. Memory is limited to one chunk: 500 users and about
        10,000 events, posts or members, or one user with more. Blocks are compared before follows, follows before
        posts, and posts before home caches, so that one run corrects nearly everything. Raises ArchiveUnavailable,
        WrongArchive and StoreUnavailable.
        """
        await self.binding.check()
        if not await self._wait():
            self.timeout = 0.0
        last, watermark, archived = await self.log.last(), await self.log.watermark(), await self.archive.state()
        report = RepairReport(min(watermark, archived.watermark), last, correct)
        totals = await self._totals() if on_progress else Counter[str]()
        scope = Scope(self.store, self.archive, self.binding, self.commit, self.tuning, report.up_to)
        comparisons = [compare(scope) for compare in self.comparisons]
        report.compared.update({comparison.part: 0 for comparison in comparisons})
        for comparison in comparisons:
            scope.scanned = 0
            total = totals[kind_of(keys.user(0) if comparison.of_users else comparison.key(0))]
            async for chunk in comparison.subjects():
                report.compared[comparison.part] += len(chunk)
                differences = await self._differences(comparison, chunk, report)
                report.add(differences, await self._correct(scope, differences, correct=correct))
                if on_progress:
                    on_progress(comparison.part, scope.scanned, total)
        if report.corrected.total() or (correct and announces):
            await self.commit([StoreRepaired()], erasing=True)  # however full the store is
        return report

    async def _differences(
        self, comparison: Comparison, chunk: Sequence[int], report: RepairReport
    ) -> list[Difference]:
        """Return the differences found by both of two comparisons, unless events in progress may have caused them."""
        found = await comparison.compare(chunk)
        if not found:
            return []
        await asyncio.sleep(PAUSE_SECONDS)  # a cut of a hot timeline takes two steps: let it end
        await self._wait()
        reached = await self._reached()
        known = {difference.identity for difference in found}
        again = await comparison.compare(list(dict.fromkeys(difference.subject for difference in found)))
        found = [difference for difference in again if difference.identity in known]
        sure = await certain(self.log, reached, found)
        report.left_out += len(found) - len(sure)
        return sure

    async def _correct(self, scope: Scope, differences: Sequence[Difference], *, correct: bool) -> list[bool]:
        """Correct differences, 500 at once so that they share round trips. Return whether each was corrected."""
        outcomes: list[bool] = []
        for some in chunks(differences, CORRECTIONS_AT_ONCE) if correct else ():
            outcomes += await correct_all(scope, some)
        return outcomes or [False] * len(differences)

    async def _wait(self) -> bool:
        """Wait until every event now in the log is projected and archived. Return False after the timeout."""
        last = await self.log.last()
        try:
            async with asyncio.timeout(self.timeout):
                while await self._reached() < last:  # noqa: ASYNC110 - the store sends no notification
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            return False
        return True

    async def _reached(self) -> int:
        watermarks = await self.store.read([("GET", keys.WATERMARK), ("GET", keys.ARCHIVED)])
        return min(int(each or 0) for each in watermarks)

    async def _totals(self) -> Counter[str]:
        """Return the number of keys of each kind. One round trip per 1,000 keys."""
        totals: Counter[str] = Counter()
        async for found in self.store.scan("*"):
            totals.update(kind_of(key) for key in found if key.endswith("}"))
        return totals


async def correct_all(scope: Scope, differences: Sequence[Difference]) -> list[bool]:
    """Correct differences, and return whether each was corrected. Two round trips, plus the cost of the functions."""
    commands = [[] if callable(d.correction) else [*d.correction] for d in differences]
    outcomes = [False] * len(differences)
    places = [place for place, some in enumerate(commands) if some]
    for place, reply in zip(places, await scope.send([commands[place][0] for place in places]), strict=True):
        outcomes[place] = bool(reply)
    await scope.send([command for place in places if outcomes[place] for command in commands[place][1:]])
    for place, difference in enumerate(differences):
        if callable(difference.correction):
            outcomes[place] = await difference.correction()
    return outcomes


def kind_of(key: str) -> str:
    """Return the part of a key before its hash tag."""
    return key.partition("{")[0]
