"""Comparison of plain reposts: what each user has reposted. `Timelines` and `Records` compare the reposts as posts."""

from collections.abc import Sequence

from graph import keys
from graph.archive.rows import REDACTED
from graph.fold import content
from graph.fold.loading import REPOST_KINDS
from graph.log.events import Unreposted
from graph.projections.reposts import ending_key
from graph.repair.follows import is_wrong
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Comparison, Element, set_element


class Reposted(Comparison):
    """Compares the posts that each user has reposted, and finds reposts of deleted posts.

    Two queries and one round trip for 500 users; one more for differences. Users with more than 10,000 events are
    split.
    """

    part = Part.POSTS
    key = staticmethod(keys.reposted)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the reposts that differ, and those that should have ended with their original."""
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.REPOSTED, REPOST_KINDS):
            expected: dict[Element, int] = {}
            for user, held in events.reposted.items():
                expected |= {(user, post): number for post, number in held.members.items()}
                expected |= {(user, post): -number for post, number in held.tombstones.items()}
            rows = await self.scope.send([("ZRANGE", keys.reposted(user), 0, -1, "WITHSCORES") for user in users])
            stored = {
                (user, int(post)): int(number)
                for user, row in zip(users, rows, strict=True)
                for post, number in row
                if post.isdecimal()
            }
            pairs = {*expected, *stored}
            found += await self._wrong(
                {pair: expected.get(pair) for pair in pairs if is_wrong(expected.get(pair), stored.get(pair))}
            )
            found += await self._left({pair: number for pair, number in expected.items() if number > 0})
        return found

    async def _wrong(self, wrong: dict[Element, int | None]) -> list[Difference]:
        """Return those of the elements that are not newer than the archive."""
        found = []
        for element, state in (await self.scope.states(keys.reposted, wrong)).items():
            expected = wrong[element]
            if abs(state or 0) <= self.scope.upto and is_wrong(expected, state if state and state > 0 else None):
                user, post = element
                command = set_element(keys.reposted, element, state, expected)
                text = f"post {post} reposted by user {user}"
                found.append(Difference(Kind.REPOST_WRONG, user, f"repost {post}", text, [command]))
        return found

    async def _left(self, reposts: dict[Element, int]) -> list[Difference]:
        """Return the reposts whose original is deleted."""
        kinds = await self.scope.archive.kinds_of({post for _, post in reposts})
        return [
            self._end(user, post, repost)
            for (user, post), repost in reposts.items()
            if kinds.get(post) == REDACTED and repost <= self.scope.upto
        ]

    def _end(self, user: int, post: int, repost: int) -> Difference:
        async def end() -> bool:
            await self.scope.commit([Unreposted(user, post, repost)], ending_key(repost))
            return True

        return Difference(Kind.REPOST_LEFT, user, f"end {repost}", f"repost {repost} of the deleted post {post}", end)
