"""Comparison of plain reposts: the posts that each user has reposted.

`TimelineComparison` and `RecordComparison` compare the reposts as posts.
"""

from collections.abc import Mapping, Sequence

from graph import keys
from graph.archive.rows import REDACTED
from graph.expected.event_folds import fold_event
from graph.expected.loading import REPOST_KINDS
from graph.fold import content
from graph.log.events import Unreposted
from graph.projections.reposts import ending_key
from graph.repair import defects
from graph.repair.posts import lost_among
from graph.repair.report import Difference
from graph.repair.scope import Comparison, Element, set_element
from graph.repair.versioned_sets import expected_of, id_of, still_wrong, wrong_elements


class RepostedComparison(Comparison):
    """Compares the posts that each user has reposted, and finds reposts of deleted and lost posts.

    Two queries and one round trip for 500 users; one more for differences, and one for originals that are not archived.
    Groups of users with more than 10,000 events are split.
    """

    part = defects.POSTS
    key = staticmethod(keys.reposted)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in reposts, including the reposts that should have ended with their original."""
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.REPOSTED, REPOST_KINDS, fold_event):
            expected = expected_of(events.reposted.items())
            found += await self._wrong(await wrong_elements(self.scope, keys.reposted, users, expected, id_of))
            found += await self._left({pair: number for pair, number in expected.items() if number > 0})
        return found

    async def _wrong(self, wrong: Mapping[Element, int | None]) -> list[Difference]:
        """Return a difference for each element that is still wrong and not newer than the archive."""
        found = []
        for element, state in (await still_wrong(self.scope, keys.reposted, wrong)).items():
            user, post = element
            command = set_element(keys.reposted, element, state, wrong[element])
            text = f"post {post} reposted by user {user}"
            found.append(Difference(defects.REPOST_WRONG, user, f"repost {post}", text, [command]))
        return found

    async def _left(self, reposts: dict[Element, int]) -> list[Difference]:
        """Return a difference for each repost whose original is deleted or lost."""
        originals = {post for _, post in reposts}
        kinds = await self.scope.archive.kinds_of(originals)
        ended = {post for post, kind in kinds.items() if kind == REDACTED}
        ended |= await lost_among(self.scope, originals, kinds)
        return [
            self._end(user, post, repost)
            for (user, post), repost in reposts.items()
            if post in ended and repost <= self.scope.up_to
        ]

    def _end(self, user: int, post: int, repost: int) -> Difference:
        async def end() -> bool:
            await self.scope.commit([Unreposted(user, post, repost)], ending_key(repost))
            return True

        return Difference(
            defects.REPOST_LEFT,
            user,
            f"end {repost} of {post}",
            f"repost {repost} of the deleted or lost post {post}",
            end,
        )
