"""The projection of notifications: the newest groups of each user, and the number up to which they are read.

The number of a group can only rise, so repeated and late events change nothing. A full list drops its oldest groups and
keeps their highest number as its floor; events up to the floor are ignored. So the list holds the newest groups, in
whatever order the events are projected. Groups of deleted posts stay in the list; reads leave them out.
"""

from collections.abc import Iterable, Sequence

import orjson

from graph import keys
from graph.log.events import Event, NotificationsRead
from graph.log.notification_groups import Group
from graph.log.recipients import recipients
from graph.relations.versioned_sets import by_owner
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

RECIPIENTS_PER_SCRIPT = 1000


def notice_commands(store: Store, events: Iterable[Event], kept: int) -> list[Command]:
    """Return the commands that add the groups of events to the lists of their recipients, which keep `kept` groups."""
    return group_commands(
        store, ((user, group, event.number) for event in events for user, group in recipients(event)), kept
    )


def group_commands(store: Store, groups: Iterable[tuple[int, Group, int]], kept: int) -> list[Command]:
    """Return the commands that raise the numbers of recipients' groups, in lists that keep the newest `kept` groups."""
    changes = ((user, number, group.member) for user, group, number in groups)
    commands = []
    for some in store.together(by_owner(changes), lambda change: keys.notifications(change[0]), RECIPIENTS_PER_SCRIPT):
        names = [keys.notifications(user) for user, _ in some]
        commands.append(script("notify").call(names, kept, orjson.dumps([pairs for _, pairs in some])))
    return commands


def read_up_to(number: int, body: NotificationsRead) -> int:
    """Return the number up to which this event marks notifications as read: at most the event's own number."""
    return min(number, body.upto)


async def mark_read(store: Store, events: Sequence[tuple[int, NotificationsRead]]) -> None:
    """Raise the numbers up to which users have read their notifications. One round trip."""
    read_to_of: dict[int, int] = {}
    for number, body in events:
        read_to_of[body.user] = max(read_to_of.get(body.user, 0), read_up_to(number, body))
    raise_read = script("raise_read")
    await send_in_batches(
        store, [raise_read.call([keys.notifications_read(user)], read_to) for user, read_to in read_to_of.items()]
    )
