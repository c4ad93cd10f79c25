"""Follows: follow and unfollow, and the lists of followers and followed users.

A follow or unfollow that changes nothing appends no event. Whether it changes something depends on the last event about
the two users, projected or not (`graph.relations.latest`).

A follow counts as *renewed* if an earlier follow of the same two users, or its tombstone, is known when it is
committed. A user who repeatedly follows and unfollows another user therefore notifies that user only once while the
tombstone exists.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from graph import keys
from graph.commit import Commit
from graph.errors import FolloweesDeleted
from graph.log.events import Blocked, Event, Followed, Unblocked, Unfollowed
from graph.log.log import Log
from graph.model import Follow, FollowOutcome, FollowRefusal, Page
from graph.pages.user_pages import user_pages
from graph.paging import Window
from graph.relations.latest import read_latest
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.suspensions import existence, exists
from graph.visibility.views import View


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the viewer follows a user, and whether there is a block between the two.

    `follows` is also True for a held follow, which does not count because of a block. `known` is True if any follow is
    known, even one that has ended.
    """

    follows: bool
    blocked: bool
    known: bool


class Follows:
    """The follows of users. A user can follow at most `max_following` others."""

    def __init__(self, store: Store, log: Log, commit: Commit, max_following: int) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._max_following = max_following

    async def follow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome | FollowRefusal]:
        """Follow users (distinct ids). Return the outcome or refusal for each, in order.

        Four round trips, and more if the store says that the viewer already follows a user (`_confirmed`). If the new
        follows would exceed the limit, none is written and they are refused with LIMIT_REACHED. Concurrent calls may
        exceed the limit together.
        """
        outcomes, changed, count = await self._outcomes(viewer, users, follow=True)
        if count > self._max_following:
            return [FollowRefusal.LIMIT_REACHED if o is FollowOutcome.FOLLOWED else o for o in outcomes]
        deleted = await self._commit_follows(viewer, changed)
        return [FollowRefusal.NOT_FOUND if user in deleted else o for user, o in zip(users, outcomes, strict=True)]

    async def _commit_follows(self, viewer: int, users: Mapping[int, bool]) -> set[int]:
        """Commit follows, and return the users whom the log refuses because they were deleted in the meantime.

        `users` maps each user to whether the follow is renewed.
        """
        deleted: set[int] = set()
        while True:
            follows = [Followed(viewer, user, renewed) for user, renewed in users.items() if user not in deleted]
            try:
                await self._commit(follows)
            except FolloweesDeleted as refused:
                deleted.update(refused.users)
            else:
                return deleted

    async def unfollow(self, viewer: int, users: Sequence[int]) -> list[FollowOutcome | FollowRefusal]:
        """Unfollow users (distinct ids). Return the outcome or refusal for each, in order.

        Four round trips, and more if the store says that the viewer does not follow a user (`_confirmed`).
        """
        outcomes, changed, _ = await self._outcomes(viewer, users, follow=False)
        await self._commit([Unfollowed(viewer, user) for user in changed])
        return outcomes

    async def _outcomes(
        self, viewer: int, users: Sequence[int], *, follow: bool
    ) -> tuple[list[FollowOutcome | FollowRefusal], dict[int, bool], int]:
        """Return the outcome or refusal for each id, the users whose follow may change, and the number of follows.

        The second value maps users to whether an earlier follow is known, and leaves out refused users. The number is
        an upper bound on the viewer's follows after the change.
        """
        if not users:
            return [], {}, 0
        following = keys.following(viewer)
        commands: list[Command] = [("GET", keys.WATERMARK), ("ZCARD", following), *standing_reads(viewer, users)]
        commands += map(existence, users)
        [watermark, count, *replies] = await self._store.read(commands)
        stored = standings(users, replies[:READS])
        known = dict(zip(users, map(exists, replies[READS:]), strict=True))
        others = {user for user in users if known[user] and user != viewer}
        unchanged = [user for user in others if stored[user].follows is follow or stored[user].blocked]
        confirmed = await self._confirmed(viewer, unchanged, int(watermark or 0))
        now = {**stored, **confirmed}
        refused = {user for user in others if follow and now[user].blocked}
        unconfirmed = {user for user in unchanged if user not in confirmed} - refused
        changed = {
            user: now[user].known
            for user in users
            if (user in unconfirmed or (user in others and now[user].follows is not follow)) and user not in refused
        }
        outcomes = [
            FollowRefusal.SELF
            if user == viewer
            else FollowRefusal.NOT_FOUND
            if user not in others
            else FollowRefusal.BLOCKED
            if user in refused
            else OUTCOMES[follow, now[user].follows]
            for user in users
        ]
        added = sum(not stored[user].follows for user in others - refused)
        return outcomes, changed, count + added

    async def _confirmed(self, viewer: int, users: Sequence[int], watermark: int) -> dict[int, Standing]:
        """Return the standing of the viewer with each user after the last event (`graph.relations.latest`).

        The result is empty if that is uncertain: the caller then appends an event anyway, and returns the outcome that
        the store implies.
        """
        if not users:
            return {}
        latest = await read_latest(self._store, self._log, standing_reads(viewer, users), watermark)
        return {} if latest.events is None else latest.after(standings(users, latest.rows), partial(after, viewer))

    async def followed_by(self, viewer: int) -> dict[int, int]:
        """Return whom a viewer follows, with the numbers of the follows. One round trip, O(n) for n follows."""
        [rows] = await self._store.read([("ZRANGE", keys.following(viewer), 0, -1, "WITHSCORES")])
        return {int(user): int(score) for user, score in rows}

    async def muted_by(self, viewer: int) -> set[int]:
        """Return the users whom a viewer mutes. One round trip, O(n) for n mutes."""
        [rows] = await self._store.read([("ZRANGE", keys.muting(viewer), 0, -1)])
        return {int(user) for user in rows}

    async def followers(self, view: View, users: Sequence[int], window: Window) -> list[Page[Follow]]:
        """Return a page of the followers of each user, newest first. One round trip; see `user_pages`."""
        return await user_pages(self._store, view, keys.followers, users, window)

    async def following(self, view: View, users: Sequence[int], window: Window) -> list[Page[Follow]]:
        """Return a page of the users that each user follows, newest first. One round trip; see `user_pages`."""
        return await user_pages(self._store, view, keys.following, users, window)


READS = 5
"""The number of replies to `standing_reads`."""
OUTCOMES = {
    (True, True): FollowOutcome.ALREADY_FOLLOWING,
    (True, False): FollowOutcome.FOLLOWED,
    (False, True): FollowOutcome.UNFOLLOWED,
    (False, False): FollowOutcome.NOT_FOLLOWING,
}
"""Maps (whether the request is to follow, whether the viewer followed the user before) to the outcome."""


def standing_reads(viewer: int, users: Sequence[int]) -> list[Command]:
    """Return the commands that read the standing of a viewer with other users, from the viewer's slot."""
    following = keys.following(viewer)
    names = (following, keys.held(following), keys.gone(following), keys.blocking(viewer), keys.blockers(viewer))
    return [("ZMSCORE", name, *users) for name in names]


def standings(users: Sequence[int], replies: Sequence[Sequence[float | None]]) -> dict[int, Standing]:
    """Return the standing of the viewer with each user, from the replies to `standing_reads`."""
    return {
        user: Standing(
            follows=member is not None or held is not None,
            blocked=blocks is not None or is_blocked is not None,
            known=member is not None or held is not None or gone is not None,
        )
        for user, member, held, gone, blocks, is_blocked in zip(users, *replies, strict=True)
    }


def after(viewer: int, standings: dict[int, Standing], event: Event) -> dict[int, Standing]:
    """Apply a later event to the standing of the viewer with other users, and return the result."""
    body = event.body
    if isinstance(body, Followed | Unfollowed):
        if body.follower == viewer and body.followee in standings:
            standings[body.followee] = replace(standings[body.followee], follows=isinstance(body, Followed), known=True)
    elif isinstance(body, Blocked | Unblocked) and viewer in (body.blocker, body.blocked):
        user = body.blocked if body.blocker == viewer else body.blocker
        if user in standings:
            standings[user] = replace(standings[user], follows=False, blocked=isinstance(body, Blocked))
    return standings
