"""Projections: apply events to the keys that reads use.

A mutation projects its events before it returns, and a worker projects every event again. Every step is idempotent and
independent of the order of events, so any process may repeat any events in any order with the same result.

The order of steps within one event matters; see `graph.projections.follows` and `graph.projections.posts`. A
notification is written after what it shows.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from graph import keys
from graph.binding import Binding
from graph.home.delivery import DeliveryModes
from graph.home.fan_out import FanOuts
from graph.home.pacing import UNPACED, Pace
from graph.log.account_events import UserDeleted, UserErased
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    Liked,
    ListChanged,
    ListCreated,
    ListDeleted,
    Muted,
    NotificationsRead,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    Reposted,
    SessionsEnded,
    Unblocked,
    Unfollowed,
    Unliked,
    Unmuted,
    Unreposted,
    UserCreated,
)
from graph.log.log import Log
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.numbers import before
from graph.projections.accounts import (
    change_passwords,
    change_permissions,
    change_profiles,
    change_suspensions,
    create_users,
    end_sessions,
)
from graph.projections.blocks import change_blocks, change_mutes
from graph.projections.deletions import delete_users, finish_users
from graph.projections.follows import add_follows, remove_follows
from graph.projections.likes import LikeProjection
from graph.projections.lists import change_lists
from graph.projections.mode import Mode
from graph.projections.notifications import mark_read, notice_commands
from graph.projections.posts import PostProjection
from graph.projections.reposts import RepostProjection
from graph.store.commands import Command
from graph.store.store import Store
from graph.tuning import Tuning

E = TypeVar("E")


class Projections:
    """Projects events.

    A mutation pushes a post to at most `tuning.sync_followers` followers before it returns. Tombstones are kept for at
    least `tuning.tombstones_live`, and lists of notifications keep the newest `tuning.notifications_kept` groups.
    """

    def __init__(
        self,
        store: Store,
        log: Log,
        fan_outs: FanOuts,
        delivery_modes: DeliveryModes,
        binding: Binding,
        tuning: Tuning,
    ) -> None:
        self._store = store
        self._log = log
        self._tombstones_live = tuning.tombstones_live
        self._notifications_kept = tuning.notifications_kept
        self._likes = LikeProjection(store, binding)
        self._posts = PostProjection(store, fan_outs, delivery_modes, sync_followers=tuning.sync_followers)
        self._reposts = RepostProjection(store, log, binding, self._posts)

    async def project(self, events: Sequence[Event], mode: Mode, pace: Pace = UNPACED) -> None:
        """Project events as far as the mode says. Idempotent. `pace` slows the fan-out of posts down.

        A publication costs three round trips and one for every 1,000 followers, a plain repost two and these; a block
        three; a deletion of a user four; a sign-up, follow, unfollow, deletion or end of a repost two; other events
        one. A like takes two and a query if the user may be among the archived likes. A batch of events shares the
        round trips. A worker appends the ends of the plain reposts of deleted posts, 500 in a round trip.
        """
        store = self._store
        await create_users(store, select(events, UserCreated))
        await change_profiles(store, select(events, ProfileChanged))
        await change_permissions(store, [*select(events, PermissionGranted), *select(events, PermissionRevoked)])
        await change_passwords(store, select(events, PasswordChanged))
        await change_suspensions(store, [*select(events, UserSuspended), *select(events, UserUnsuspended)])
        await end_sessions(store, select(events, SessionsEnded))
        await delete_users(store, select(events, UserDeleted))
        await finish_users(store, select(events, UserErased))
        await add_follows(store, select(events, Followed), self._notices(events, Followed))
        trim_up_to = self._trim_up_to(events)
        await change_mutes(store, [*select(events, Muted), *select(events, Unmuted)], trim_up_to)
        await change_blocks(store, [*select(events, Blocked), *select(events, Unblocked)], trim_up_to)
        await change_lists(
            store,
            [*select(events, ListCreated), *select(events, ListChanged), *select(events, ListDeleted)],
            trim_up_to,
        )
        notices = self._notices(events, PostPublished)
        await self._posts.publish(select(events, PostPublished), mode, pace, notices)
        notices = self._notices(events, Reposted)
        await self._reposts.add(select(events, Reposted), mode, trim_up_to, pace, notices)
        await remove_follows(store, select(events, Unfollowed), trim_up_to)
        await self._reposts.remove(select(events, Unreposted), trim_up_to)
        deletions = select(events, PostDeleted)
        await self._posts.delete(deletions, trim_up_to)
        if mode.is_complete and deletions:
            await self._reposts.end_of_deleted(deletions)
        notices = self._notices(events, Liked)
        likes: list[tuple[int, Liked | Unliked]] = [*select(events, Liked), *select(events, Unliked)]
        await self._likes.change(likes, trim_up_to, notices)
        await mark_read(store, select(events, NotificationsRead))

    async def catch_up(self, viewer: int, events: Sequence[Event]) -> None:
        """Project events that concern a viewer, so that the viewer's next page shows them.

        The viewer's home cache is deleted instead of filled.
        """
        if events:
            await self.project(events, Mode.CATCH_UP)
            await self._store.send([("UNLINK", keys.home(viewer))])

    def _notices(self, events: Sequence[Event], body_type: type[Any]) -> list[Command]:
        """Return the commands that notify the recipients of the events whose bodies have this type."""
        of_type = [event for event in events if isinstance(event.body, body_type)]
        return notice_commands(self._store, of_type, self._notifications_kept)

    def _trim_up_to(self, events: Sequence[Event]) -> int:
        """Return the highest number of a tombstone that no late or repeated event can still need.

        The age is counted from the newest of these events, whose times are those of the store.
        """
        newest = max((event.number for event in events), default=0)
        return min(self._log.discardable, before(newest, self._tombstones_live))


def select(events: Iterable[Event], body_type: type[E]) -> list[tuple[int, E]]:
    """Return the numbers and bodies of the events whose bodies have this type."""
    return [(event.number, event.body) for event in events if isinstance(event.body, body_type)]
