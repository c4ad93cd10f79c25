"""Follows: follow and unfollow, and the lists of followers and followed users."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from graph import keys
from graph.commit import Commit
from graph.log.events import Followed, Unfollowed
from graph.model import Follow, FollowOutcome, Page, new_follow
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store


class Follows:
    """The follows of users. A user follows at most `max_following` others."""

    def __init__(self, store: Store, commit: Commit, max_following: int) -> None:
        self._store = store
        self._commit = commit
        self._max_following = max_following

    async def follow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Follow users (distinct ids) and return the outcome for each, in order. Four round trips.

        If the new follows would exceed the limit, none is written and their outcome is LIMIT_REACHED. Concurrent calls
        may exceed the limit together.
        """
        outcomes, count = await self._outcomes(viewer, users, FollowOutcome.FOLLOWED, FollowOutcome.ALREADY_FOLLOWING)
        new = [user for user, outcome in zip(users, outcomes, strict=True) if outcome is FollowOutcome.FOLLOWED]
        if count + len(new) > self._max_following:
            return [FollowOutcome.LIMIT_REACHED if o is FollowOutcome.FOLLOWED else o for o in outcomes]
        await self._commit([Followed(viewer, user) for user in new])
        return outcomes

    async def unfollow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Unfollow users (distinct ids) and return the outcome for each, in order. Four round trips."""
        outcomes, _ = await self._outcomes(viewer, users, FollowOutcome.NOT_FOLLOWING, FollowOutcome.UNFOLLOWED)
        gone = [user for user, outcome in zip(users, outcomes, strict=True) if outcome is FollowOutcome.UNFOLLOWED]
        await self._commit([Unfollowed(viewer, user) for user in gone])
        return outcomes

    async def _outcomes(
        self, viewer: int, users: Sequence[int], if_absent: FollowOutcome, if_present: FollowOutcome
    ) -> tuple[list[FollowOutcome], int]:
        """Return the outcome for each id, and the number of users that the viewer follows now."""
        if not users:
            return [], 0
        following = keys.following(viewer)
        commands: list[Command] = [("ZCARD", following), ("ZMSCORE", following, *users)]
        commands += [("EXISTS", keys.user(user)) for user in users]
        [count, scores, *known] = await self._store.read(commands)
        outcomes = []
        for user, score, exists in zip(users, scores, known, strict=True):
            if user == viewer:
                outcomes.append(FollowOutcome.SELF)
            elif not exists:
                outcomes.append(FollowOutcome.NOT_FOUND)
            else:
                outcomes.append(if_absent if score is None else if_present)
        return outcomes, count

    async def followed_by(self, viewer: int) -> dict[int, int]:
        """Return the followed users with the numbers of the Followed events. One round trip, O(n) for n follows."""
        [rows] = await self._store.read([("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES")])
        return {int(user): int(score) for user, score in rows}

    def followers(self, users: Sequence[int], window: Window) -> "asyncio.Future[list[Page[Follow]]]":
        """Return a page of the followers of each user, newest first. One round trip."""
        return self._pages(keys.followers, users, window)

    def following(self, users: Sequence[int], window: Window) -> "asyncio.Future[list[Page[Follow]]]":
        """Return a page of the users that each user follows, newest first. One round trip."""
        return self._pages(keys.following, users, window)

    def _pages(
        self, key: Callable[[int], str], users: Sequence[int], window: Window
    ) -> "asyncio.Future[list[Page[Follow]]]":
        low, high = f"({window.low}", f"({window.high}"
        bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
        limit = ("LIMIT", 0, window.count + 1, "WITHSCORES")
        return self._store.ask([("ZRANGE", key(user), *bounds, *limit) for user in users], partial(as_pages, window))


def as_pages(window: Window, replies: Sequence[Sequence[tuple[str, float]]]) -> list[Page[Follow]]:
    """Return the pages of a window from replies of users and numbers."""
    return [window.page([new_follow((int(user), int(score))) for user, score in rows]) for rows in replies]
