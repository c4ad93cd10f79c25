"""Comparison of the public timeline with the events: its posts, and the suspensions that the archive has noted."""

from collections.abc import AsyncIterator, Sequence
from functools import partial

from graph import keys
from graph.archive.rows import ArchiveChanged
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Comparison

POSTS_AT_ONCE = 2000


class DecisionComparison(Comparison):
    """Compares the newest suspension decision that the archive notes for each user. One transaction for 500 users."""

    part = defects.PUBLIC
    key = staticmethod(keys.user)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the users whose newest decision is not noted. Noting it makes the worker move the user's posts."""
        found = await self.scope.archive.wrong_decisions(subjects)
        return [
            Difference(
                defects.SUSPENSION_WRONG,
                user,
                "suspension",
                f"user {user}: the newest decision is {f'event {event.number}' if event else 'missing'}",
                partial(self._correct, user),
            )
            for user, event in found.items()
            if event is None or event.number <= self.scope.up_to
        ]

    async def _correct(self, user: int) -> bool:
        try:
            await self.scope.archive.correct_decisions([user], await self.scope.binding.store_id())
        except ArchiveChanged:
            return False
        return True


class PublicPostComparison(Comparison):
    """Compares the public timeline with the posts that belong on it. Two transactions for 2,000 posts."""

    part = defects.PUBLIC
    key = staticmethod(keys.post)
    of_users = False

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield all posts in the archive, and the posts that are only on the public timeline."""
        after = 0
        while posts := await self.scope.archive.public_numbers(after, POSTS_AT_ONCE):
            after = posts[-1]
            yield [post for post in posts if post <= self.scope.up_to]

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the posts that are missing from the public timeline, and the posts that are on it by mistake."""
        found = await self.scope.archive.wrong_public_posts(subjects)
        return [
            Difference(
                defects.PUBLIC_WRONG,
                post,
                "public",
                f"post {post} {'by mistake' if each.wanted is None else f'by user {each.wanted}, missing or wrong'}",
                partial(self._correct, post),
            )
            for post, each in found.items()
        ]

    async def _correct(self, post: int) -> bool:
        try:
            await self.scope.archive.correct_public_posts([post], await self.scope.binding.store_id())
        except ArchiveChanged:
            return False
        return True
