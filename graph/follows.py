"""Follows: follow and unfollow, and the lists of followers and followed users.

A follow or unfollow that changes nothing appends no event. Whether it changes something depends on the last event, not
on what the store holds: the event of a request that failed or was interrupted after its commit is projected later, and
would otherwise undo the answer to the next request.
"""

import asyncio
from collections.abc import Sequence

from graph import keys
from graph.commit import Commit
from graph.log.events import Followed, Unfollowed
from graph.log.log import Log
from graph.model import Follow, FollowOutcome, Page
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store
from graph.user_lists import user_pages
from graph.visibility import View


class Follows:
    """The follows of users. A user follows at most `max_following` others."""

    def __init__(self, store: Store, log: Log, commit: Commit, max_following: int) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._max_following = max_following

    async def follow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Follow users (distinct ids) and return the outcome for each, in order.

        Four round trips, and more if the store says that the viewer already follows a user (`_confirmed`). If the new
        follows would exceed the limit, none is written and their outcome is LIMIT_REACHED. Concurrent calls may exceed
        the limit together.
        """
        outcomes, changed, count = await self._outcomes(viewer, users, follow=True)
        if count > self._max_following:
            return [FollowOutcome.LIMIT_REACHED if o is FollowOutcome.FOLLOWED else o for o in outcomes]
        await self._commit([Followed(viewer, user) for user in changed])
        return outcomes

    async def unfollow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome]:
        """Unfollow users (distinct ids) and return the outcome for each, in order.

        Four round trips, and more if the store says that the viewer does not follow a user (`_confirmed`).
        """
        outcomes, changed, _ = await self._outcomes(viewer, users, follow=False)
        await self._commit([Unfollowed(viewer, user) for user in changed])
        return outcomes

    async def _outcomes(
        self, viewer: int, users: Sequence[int], *, follow: bool
    ) -> tuple[list[FollowOutcome], list[int], int]:
        """Return the outcome for each id, the users whose follow changes or may change, and the number of follows.

        The number is that of the users whom the viewer follows afterwards, at most.
        """
        if not users:
            return [], [], 0
        following = keys.following(viewer)
        commands: list[Command] = [("GET", keys.WATERMARK), ("ZCARD", following), ("ZMSCORE", following, *users)]
        commands += [("EXISTS", keys.user(user)) for user in users]
        [watermark, count, scores, *known] = await self._store.read(commands)
        stored = {user: score is not None for user, score in zip(users, scores, strict=True)}
        others = {user for user, exists in zip(users, known, strict=True) if exists and user != viewer}
        unchanged = [user for user in others if stored[user] is follow]
        confirmed = await self._confirmed(viewer, unchanged, int(watermark or 0))
        changed = [user for user in users if user in others and confirmed.get(user, not follow) is not follow]
        follows = {**stored, **confirmed}
        outcomes = []
        for user in users:
            if user == viewer:
                outcomes.append(FollowOutcome.SELF)
            elif user not in others:
                outcomes.append(FollowOutcome.NOT_FOUND)
            elif follow:
                outcomes.append(FollowOutcome.ALREADY_FOLLOWING if follows[user] else FollowOutcome.FOLLOWED)
            else:
                outcomes.append(FollowOutcome.UNFOLLOWED if follows[user] else FollowOutcome.NOT_FOLLOWING)
        return outcomes, changed, count + sum(not stored[user] for user in others)

    async def _confirmed(self, viewer: int, users: Sequence[int], watermark: int) -> dict[int, bool]:
        """Return whether the viewer follows each user, or nothing if that is uncertain.

        The events after the watermark, which was read before, may not be projected: they count more than the store. If
        there are too many to search, the caller appends an event in any case, and answers what the store says. One
        round trip per 500 of these events.
        """
        if not users:
            return {}
        [scores], unprojected = await asyncio.gather(
            self._store.read([("ZMSCORE", keys.following(viewer), *users)]), self._log.unprojected(watermark)
        )
        if unprojected is None:
            return {}
        follows = {user: score is not None for user, score in zip(users, scores, strict=True)}
        for event in unprojected:
            match event.body:
                case Followed(follower, user) | Unfollowed(follower, user) if follower == viewer and user in follows:
                    follows[user] = isinstance(event.body, Followed)
                case _:
                    pass
        return follows

    async def followed_by(self, viewer: int) -> dict[int, int]:
        """Return the followed users with the numbers of the Followed events. One round trip, O(n) for n follows."""
        [rows] = await self._store.read([("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES")])
        return {int(user): int(score) for user, score in rows}

    async def followers(self, view: View, users: Sequence[int], window: Window) -> list[Page[Follow]]:
        """Return a page of the followers of each user, newest first. One round trip; see `user_pages`."""
        return await user_pages(self._store, view, keys.followers, users, window)

    async def following(self, view: View, users: Sequence[int], window: Window) -> list[Page[Follow]]:
        """Return a page of the users that each user follows, newest first. One round trip; see `user_pages`."""
        return await user_pages(self._store, view, keys.following, users, window)
