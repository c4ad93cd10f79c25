"""Follows: follow and unfollow, followers and following lists."""

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
    """Who follows whom. A person follows at most `max_following` others."""

    def __init__(self, store: Store, commit: Commit, max_following: int) -> None:
        self._store = store
        self._commit = commit
        self._max_following = max_following

    async def follow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Follow people (distinct ids); answer for each in order.

        All or nothing: if the new ones would exceed the limit, nothing is written and they answer LIMIT_REACHED. Two
        tabs at once may pass the limit by what they add together. Four round trips, whatever the number of people.
        """
        outcomes, count = await self._judge(viewer, users, FollowOutcome.FOLLOWED, FollowOutcome.ALREADY_FOLLOWING)
        new = [user for user, outcome in zip(users, outcomes, strict=True) if outcome is FollowOutcome.FOLLOWED]
        if count + len(new) > self._max_following:
            return [FollowOutcome.LIMIT_REACHED if o is FollowOutcome.FOLLOWED else o for o in outcomes]
        await self._commit([Followed(viewer, user) for user in new])
        return outcomes

    async def unfollow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Stop following people (distinct ids); answer for each in order. Four round trips."""
        outcomes, _ = await self._judge(viewer, users, FollowOutcome.NOT_FOLLOWING, FollowOutcome.UNFOLLOWED)
        gone = [user for user, outcome in zip(users, outcomes, strict=True) if outcome is FollowOutcome.UNFOLLOWED]
        await self._commit([Unfollowed(viewer, user) for user in gone])
        return outcomes

    async def _judge(
        self, viewer: int, users: Sequence[int], if_absent: FollowOutcome, if_present: FollowOutcome
    ) -> tuple[list[FollowOutcome], int]:
        """Tell what will become of each id, and how many the viewer follows now."""
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
        """Read whom a viewer follows, each with the number of the Followed event. One round trip, O(following)."""
        [rows] = await self._store.read([("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES")])
        return {int(user): int(score) for user, score in rows}

    def followers(self, users: Sequence[int], window: Window) -> "asyncio.Future[list[Page[Follow]]]":
        """Read a page of each person's followers, newest first. One round trip."""
        return self._pages(keys.followers, users, window)

    def following(self, users: Sequence[int], window: Window) -> "asyncio.Future[list[Page[Follow]]]":
        """Read a page of whom each person follows, newest first. One round trip."""
        return self._pages(keys.following, users, window)

    def _pages(
        self, key: Callable[[int], str], users: Sequence[int], window: Window
    ) -> "asyncio.Future[list[Page[Follow]]]":
        low, high = f"({window.low}", f"({window.high}"
        bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
        limit = ("LIMIT", 0, window.count + 1, "WITHSCORES")
        return self._store.ask([("ZRANGE", key(user), *bounds, *limit) for user in users], partial(as_pages, window))


def as_pages(window: Window, replies: Sequence[Sequence[tuple[str, float]]]) -> list[Page[Follow]]:
    """Read the members and scores of lists of follows as pages of a window."""
    return [window.page([new_follow((int(user), int(score))) for user, score in rows]) for rows in replies]
