"""Projections: apply events to the keys that reads use.

A mutation projects its events before it returns, and a worker projects every event again. Every step is idempotent and
independent of the order of events, so any process may repeat any events in any order with the same result.

The order of steps within one event matters; see `graph.relations.follow_changes` and `graph.projections.posts`. A
notification is written after the data that it shows.
"""

from collections.abc import Iterable, Sequence, Set

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
    Unreposted,
    UserCreated,
)
from graph.log.log import Log
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.notification_groups import Group
from graph.log.numbers import before
from graph.projections.accounts import (
    change_passwords,
    change_permissions,
    change_profiles,
    change_suspensions,
    create_users,
    end_sessions,
)
from graph.projections.deletions import delete_users, finish_users
from graph.projections.likes import LikeProjection
from graph.projections.mode import Mode
from graph.projections.notifications import group_commands, mark_read, notice_commands
from graph.projections.posts import PostProjection
from graph.projections.reposts import RepostProjection
from graph.projections.steps import Bodies, Circumstances, Step, Steps
from graph.relations.block_changes import change_blocks
from graph.relations.follow_changes import add_follows, remove_follows
from graph.relations.list_changes import change_lists
from graph.relations.register import PAIRS
from graph.store.batches import send_in_batches
from graph.store.commands import Command
from graph.store.store import Store
from graph.tuning import Tuning


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
        self._steps = Steps([*self._of_users(), *self._of_relations(), *self._of_posts()])

    def _of_users(self) -> list[Step]:
        store = self._store
        return [
            Step((UserCreated,), lambda bodies, _: create_users(store, bodies)),
            Step((ProfileChanged,), lambda bodies, _: change_profiles(store, bodies)),
            Step((PermissionGranted, PermissionRevoked), lambda bodies, _: change_permissions(store, bodies)),
            Step((PasswordChanged,), lambda bodies, _: change_passwords(store, bodies)),
            Step((UserSuspended, UserUnsuspended), lambda bodies, _: change_suspensions(store, bodies)),
            Step((SessionsEnded,), lambda bodies, _: end_sessions(store, bodies)),
            Step((UserDeleted,), lambda bodies, _: delete_users(store, bodies)),
            Step((UserErased,), lambda bodies, _: finish_users(store, bodies)),
        ]

    def _of_relations(self) -> list[Step]:
        store = self._store
        return [
            Step((Followed,), lambda bodies, _: add_follows(store, bodies, self._notices(bodies))),
            Step(PAIRS.kinds, lambda bodies, how: PAIRS.project(store, bodies, how.trim_up_to)),
            Step((Blocked, Unblocked), lambda bodies, how: change_blocks(store, bodies, how.trim_up_to)),
            Step(
                (ListCreated, ListChanged, ListDeleted),
                lambda bodies, how: change_lists(store, bodies, how.trim_up_to),
            ),
        ]

    def _of_posts(self) -> list[Step]:
        """Return the steps of posts. Follows end after posts are fanned out, and likes come after posts."""
        store, posts, reposts = self._store, self._posts, self._reposts
        return [
            Step(
                (PostPublished,),
                lambda bodies, how: posts.publish(bodies, how.mode, how.pace, self._notices(bodies)),
            ),
            Step(
                (Reposted,),
                lambda bodies, how: reposts.add(bodies, how.mode, how.trim_up_to, how.pace, self._notices(bodies)),
            ),
            Step((Unfollowed,), lambda bodies, how: remove_follows(store, bodies, how.trim_up_to)),
            Step((Unreposted,), lambda bodies, how: reposts.remove(bodies, how.trim_up_to)),
            Step((PostDeleted,), self._delete_posts),
            Step(
                (Liked, Unliked),
                lambda bodies, how: self._likes.change(bodies, how.trim_up_to, self._notices(bodies)),
            ),
            Step((NotificationsRead,), lambda bodies, _: mark_read(store, bodies)),
        ]

    async def _delete_posts(self, bodies: Bodies, how: Circumstances) -> None:
        await self._posts.delete(bodies, how.trim_up_to)
        if how.mode.is_complete:
            await self._reposts.end_of_deleted(bodies)

    async def project(self, events: Sequence[Event], mode: Mode, pace: Pace = UNPACED) -> None:
        """Project events to the extent that the mode defines. Idempotent. `pace` slows the fan-out of posts down.

        A publication costs three round trips and one for each chunk of followers (1,000, or 100 in a worker), a plain
        repost two and those for the chunks; a block three; a deletion of a user four; a sign-up, change of password,
        erasure, follow, unfollow, deletion or end of a repost two; other events one. A like takes two and a query if
        the user may be among the archived likes. A batch of events shares the round trips. A worker also appends
        an Unreposted for each plain repost of a deleted post, 500 per round trip.
        """
        await self._steps.run(events, Circumstances(mode, pace, self._trim_up_to(events)))

    @property
    def kinds(self) -> Set[type]:
        """The kinds of events that change something."""
        return self._steps.kinds

    async def catch_up(self, viewer: int, events: Sequence[Event]) -> None:
        """Project events that concern a viewer, so that the viewer's next page shows them.

        The viewer's home cache is deleted instead of filled.
        """
        if events:
            await self.project(events, Mode.CATCH_UP)
            await self._store.send([("UNLINK", keys.home(viewer))])

    def _notices(self, bodies: Bodies) -> list[Command]:
        """Return the commands that notify the recipients of events."""
        return notice_commands(self._store, [Event(*each) for each in bodies], self._notifications_kept)

    async def notify(self, groups: Iterable[tuple[int, Group, int]]) -> None:
        """Raise recipients' groups to the numbers of events that cannot be projected. One round trip per 500 slots."""
        await send_in_batches(self._store, group_commands(self._store, groups, self._notifications_kept))

    def _trim_up_to(self, events: Sequence[Event]) -> int:
        """Return the highest tombstone number that no late or repeated event can still need.

        The age is counted from the newest of these events, whose time comes from the store's clock.
        """
        newest = max((event.number for event in events), default=0)
        return min(self._log.discardable, before(newest, self._tombstones_live))
