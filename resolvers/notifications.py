"""The resolvers of notifications: the viewer's feed, its entries, and marking entries as read."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import BadPaging, ProblemCode, Rejected
from graph.log.notification_groups import DEFAULT_ACTORS, MAX_ACTORS, Notification, NotificationFeed, NotificationKind
from graph.model import Page, User
from graph.notifications.notifications import MAX_UNREAD
from graph.paging import CursorKind, Window, decode_cursor, encode_cursors
from resolvers import ids, inputs
from resolvers.connections import (
    After,
    Before,
    First,
    Last,
    PageEnds,
    SameCursor,
    SameNumber,
    checked_limit,
    first_page_cursors,
    page_ends,
    same_argument,
)
from resolvers.context import Context
from resolvers.payloads import Payload, mutation
from resolvers.times import FormattedTime, format_times

Kinds = Annotated[
    list[NotificationKind] | None,
    strawberry.argument(description="Return only notifications of these kinds. Defaults to all kinds."),
]
SameKinds = Annotated[list[NotificationKind] | None, same_argument("entries")]
LimitOfActors = Annotated[
    int, strawberry.argument(description=f"How many of the most recent users to return, 1 to {MAX_ACTORS}.")
]


@dataclass(frozen=True, slots=True)
class NotificationPage:
    """A page of notifications."""

    page: Page[Notification]

    @property
    def edges(self) -> tuple[Notification, ...]:
        """The notifications. Each is the record of its own edge."""
        return self.page.items

    @property
    def nodes(self) -> tuple[Notification, ...]:
        """The notifications."""
        return self.page.items

    @property
    def page_info(self) -> PageEnds:
        """The page info, with cursors of notifications."""
        items = self.page.items
        return page_ends(self.page, CursorKind.NOTIFICATION, [each.number for each in (*items[:1], *items[-1:])])


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkNotificationsReadPayload(Payload):
    """The record of `MarkNotificationsReadPayload`."""

    notifications: NotificationFeed | None = None


def feed_ids(feeds: Sequence[NotificationFeed], context: Context) -> list[str]:
    """Return the global ids of feeds."""
    return ids.encode_all(ids.Kind.NOTIFICATION_FEED, [feed.owner for feed in feeds])


async def unread_counts(feeds: Sequence[NotificationFeed], context: Context) -> list[int]:
    """Return the numbers of unread notifications, at most `MAX_UNREAD`. Two round trips, or one if there are none."""
    counted = await context.loaders.unread_counts.load_many([feed.owner for feed in feeds])
    return [min(count, MAX_UNREAD) for count in counted]


async def have_more_unread(feeds: Sequence[NotificationFeed], context: Context) -> list[bool]:
    """Return whether there are more than `MAX_UNREAD` unread notifications. Shares the reads of `unread_counts`."""
    counted = await context.loaders.unread_counts.load_many([feed.owner for feed in feeds])
    return [count > MAX_UNREAD for count in counted]


async def live_cursors(
    feeds: Sequence[NotificationFeed],
    context: Context,
    *,
    first: SameNumber = None,
    after: SameCursor = None,
    last: SameNumber = None,
    before: SameCursor = None,
    kinds: SameKinds = None,
) -> list[str | None]:
    """Return log cursors. A subscription that starts from one receives every change that the pages do not contain.

    The cursor is a watermark that was read before any page. None if the arguments are not those of a first page.
    """
    return first_page_cursors([await context.watermark()] * len(feeds), after, before)


def entries(
    feeds: Sequence[NotificationFeed],
    context: Context,
    *,
    first: First = None,
    after: After = None,
    last: Last = None,
    before: Before = None,
    kinds: Kinds = None,
) -> Awaitable[list[NotificationPage | Exception]]:
    """Return a page of each feed, newest first, limited to `kinds` if given. Two round trips. Raises BadPaging."""
    window = Window.of(CursorKind.NOTIFICATION, first=first, after=after, last=last, before=before)
    if kinds is not None and not kinds:
        raise BadPaging("'kinds' must not be empty. Omit it for all kinds.")
    return context.start(pages(feeds, context, window, None if kinds is None else frozenset(kinds)))


async def pages(
    feeds: Sequence[NotificationFeed], context: Context, window: Window, kinds: frozenset[NotificationKind] | None
) -> list[NotificationPage | Exception]:
    """Return a page of each feed. The watermark for the live cursor is read first: it must not be newer than a page."""
    await context.watermark()
    loaded = await context.loaders.notification_pages.fetch_many([((feed.owner, kinds), window) for feed in feeds])
    found: Sequence[Page[Notification] | Exception] = list(loaded)
    return [page if isinstance(page, Exception) else NotificationPage(page) for page in found]


def global_ids(notifications: Sequence[Notification], context: Context) -> list[str]:
    """Return the global ids of notifications."""
    return [ids.encode(ids.Kind.NOTIFICATION, each.recipient, each.kind.value, each.subject) for each in notifications]


def cursors(notifications: Sequence[Notification], context: Context) -> list[str]:
    """Return the cursors of notifications."""
    return encode_cursors(CursorKind.NOTIFICATION, [each.number for each in notifications])


def edge_nodes(notifications: Sequence[Notification], context: Context) -> Sequence[Notification]:
    """Return the nodes of edges: a notification is the record of its own edge."""
    return notifications


def times(notifications: Sequence[Notification], context: Context) -> list[FormattedTime]:
    """Return the times of the newest events of notifications."""
    return format_times([each.number for each in notifications])


def actors(
    notifications: Sequence[Notification], context: Context, *, limit: LimitOfActors = DEFAULT_ACTORS
) -> Awaitable[list[list[User | None]]]:
    """Return, for each notification, the users who acted most recently. One round trip. Raises BadPaging."""
    limit = checked_limit(limit, MAX_ACTORS)
    return context.start(users_of([each.actors[:limit] for each in notifications], context))


async def users_of(groups: Sequence[Sequence[int]], context: Context) -> list[list[User | None]]:
    """Return the users with the ids in each group."""
    users = iter(await context.loaders.unchecked_users.fetch_many([user for group in groups for user in group]))
    return [[next(users) for _ in group] for group in groups]


@mutation(MarkNotificationsReadPayload, ProblemCode.INVALID)
async def mark_notifications_read(
    context: Context,
    *,
    input: Annotated[
        inputs.MarkNotificationsReadInput,
        strawberry.argument(description="The cursor up to which notifications are marked as read."),
    ],
) -> MarkNotificationsReadPayload:
    """Mark the viewer's notifications as read up to a cursor."""
    viewer = context.require_viewer()
    await context.graph.notifications.mark_read(viewer.user, position_of(input.up_to))
    return MarkNotificationsReadPayload(notifications=NotificationFeed(viewer.user))


def position_of(cursor: str) -> int:
    """Return the number in a notification cursor or a log cursor. Raises Rejected (INVALID) for anything else."""
    live = cursor.startswith(f"{CursorKind.LOG.value}-")
    try:
        return decode_cursor(CursorKind.LOG if live else CursorKind.NOTIFICATION, cursor, "upTo")
    except BadPaging as error:
        raise Rejected.because(ProblemCode.INVALID, str(error), "upTo") from None
