"""Resolvers of subscriptions, and of the fields of their updates."""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from typing import Annotated, TypeAlias

import strawberry

from graph.feed import filters
from graph.feed.slices import in_slices
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    AuthorRemoved,
    FilteredUpdate,
    HomeUpdate,
    ItemAdded,
    ItemRemoved,
    NotificationAdded,
    NotificationsChanged,
    NotificationUpdate,
    PostChanged,
    PostRemoved,
    ReplyAdded,
    RepostRemoved,
    ThreadUpdate,
    TimelineUpdate,
    UserFollowed,
    UserUnfollowed,
)
from graph.log.notification_groups import Notification, NotificationFeed
from graph.model import Post, User
from graph.paging import CursorKind, decode_cursor, encode_cursor
from graph.post_lists import REPLIED, TIMELINE
from resolvers import ids
from resolvers.context import Context
from resolvers.errors import BadInput
from resolvers.inputs import EventFilter
from resolvers.posts import visible_post

After: TypeAlias = Annotated[
    str | None,
    strawberry.argument(
        description="Resume after this cursor: a `liveCursor` or the `cursor` of the last event "
        "received. Without it, the stream starts with new events."
    ),
]


def home_timeline(context: Context, *, after: After = None) -> AsyncGenerator[HomeUpdate, None]:
    """Yield the updates of the viewer's home timeline in log order: the replay after the cursor, then live updates.

    Raises Unauthenticated, BadPaging for an invalid cursor, and SessionOver if the session has ended or ends.
    """
    viewer = context.require_viewer()
    return context.graph.feed.home(viewer.user, _number_after(context, after), viewer.session, courier=context.courier)


async def timeline(
    context: Context,
    *,
    timeline_id: Annotated[
        strawberry.ID,
        strawberry.argument(description="The global id of a timeline, other than the public timeline."),
    ],
    after: After = None,
) -> AsyncGenerator[TimelineUpdate, None]:
    """Yield the updates of a timeline in log order: the replay after the cursor, then live updates.

    One round trip to find its owner. Raises BadInput unless the id is that of a timeline that the viewer can see and
    subscribe to, BadPaging for an invalid cursor, and SessionOver if the session has ended or ends.
    """
    feed, viewer, position = context.graph.feed, context.viewer, _number_after(context, after)
    user, session = (viewer.user, viewer.session) if viewer else (None, None)
    updates: AsyncGenerator[TimelineUpdate]
    match ids.decode(timeline_id):
        case ids.GlobalId(ids.Kind.USER_TIMELINE | ids.Kind.REPLIES_TIMELINE as kind, (owner,)) if (
            await context.loaders.users.fetch(owner)
        ):
            post_list, holder = TIMELINE if kind is ids.Kind.USER_TIMELINE else REPLIED, context.client.holder
            updates = feed.timeline(user, post_list, owner, position, session, holder=holder, courier=context.courier)
        case ids.GlobalId(ids.Kind.LIST_TIMELINE, (list_id,)) if viewer and await context.loaders.lists.fetch(list_id):
            updates = feed.list_timeline(viewer.user, list_id, position, session, courier=context.courier)
        case ids.GlobalId(ids.Kind.HOME_TIMELINE, (owner,)) if viewer and owner == viewer.user:
            updates = feed.home(owner, position, session, courier=context.courier)
        case ids.GlobalId(ids.Kind.PUBLIC_TIMELINE, _):
            raise BadInput("The public timeline has no live events. Fetch it again from time to time.")
        case _:
            raise BadInput("'timelineId' is not the id of a timeline that you can see. Use the 'id' of a timeline.")
    async with aclosing(updates):
        async for update in updates:
            yield update


async def thread(
    context: Context,
    *,
    post_id: Annotated[
        strawberry.ID, strawberry.argument(description="The global id of the post whose direct replies are sent.")
    ],
    after: After = None,
) -> AsyncGenerator[ThreadUpdate, None]:
    """Yield the updates of a thread in log order: the replay after the cursor, then live updates.

    The post must be visible; this check takes one round trip. If the client resumes, the post may also be deleted,
    because the replay reports the deletion; this check takes another round trip. Raises BadInput for any other id,
    BadPaging for an invalid cursor, and SessionOver if the session has ended or ends.
    """
    viewer, position = context.viewer, _number_after(context, after)
    user, session = (viewer.user, viewer.session) if viewer else (None, None)
    post = ids.number(ids.Kind.POST, post_id)
    found = None if post is None else await visible_post(context, post)
    if post is None or not (found or (position and await context.graph.posts.are_deleted([post]) == [True])):
        raise BadInput("'postId' is not the id of a post that you can see. Use the 'id' of a post.")
    holder, delay = context.client.holder, context.client.event_delay
    async with aclosing(
        context.graph.feed.thread(user, post, found and found.author, position, session, holder=holder, delay=delay)
    ) as updates:
        async for update in updates:
            yield update


def notifications_of_viewer(context: Context, *, after: After = None) -> AsyncGenerator[NotificationUpdate, None]:
    """Yield updates to the viewer's notifications: the replay after the cursor, then live updates.

    Raises Unauthenticated, BadPaging for an invalid cursor, and SessionOver if the session has ended or ends.
    """
    viewer = context.require_viewer()
    position, delay = _number_after(context, after), context.client.event_delay
    return context.graph.feed.notifications(viewer.user, position, viewer.session, delay=delay)


async def events(
    context: Context,
    *,
    filter: Annotated[EventFilter, strawberry.argument(description="The filter that events must match.")],  # noqa: A002 - contract
    after: After = None,
) -> AsyncGenerator[FilteredUpdate, None]:
    """Yield the events that match a filter in log order: the replay after the cursor, then live events.

    Raises BadInput and BadFilter for an invalid filter, BadPaging for an invalid cursor, NotPermitted for a firehose
    without the permission, SessionOver if the session has ended or ends, and the error of `Client.acquire_terms` if the
    viewer's filters together are too large.
    """
    chosen, viewer = await in_slices(_building(filter)), context.viewer
    del filter  # it may be large, and the stream may last for days
    user, session = (viewer.user, viewer.session) if viewer else (None, None)
    position = _number_after(context, after)
    holder, courier = context.client.holder, context.courier
    updates = context.graph.feed.events(user, chosen, position, session, holder=holder, courier=courier)
    async with aclosing(updates):
        release = context.client.acquire_terms(chosen.terms)
        del chosen
        try:
            async for update in updates:
                yield update
        finally:
            release()


def _number_after(context: Context, after: str | None) -> int | None:
    """Return the event number to resume after, if any. `Last-Event-ID` takes precedence over `after`: it is newer."""
    if context.resume_after:
        return decode_cursor(CursorKind.LOG, context.resume_after, "Last-Event-ID")
    return None if after is None else decode_cursor(CursorKind.LOG, after)


def _building(given: EventFilter) -> Generator[None, None, filters.EventFilter]:
    """Decode and check a client's filter, yielding often to let other tasks run. Raises BadInput and BadFilter."""
    box = given.within
    return (
        yield from filters.EventFilter.building(
            users=None if given.users is None else user_numbers(given.users),
            keywords=given.keywords,
            within=None if box is None else filters.Box(box.south, box.west, box.north, box.east),
            sample=given.sample,
            firehose=bool(given.firehose),
            kinds=given.kinds,
        )
    )


def user_numbers(ids_: Sequence[str]) -> list[int]:
    """Return the user numbers of the ids in `users`. Raises BadInput for anything other than the id of a user."""
    found = ids.numbers(ids.Kind.USER, ids_)
    return [user_number(id_) for id_ in ids_] if found is None else found


def user_number(id_: str) -> int:
    """Return the user number of an id in `users`. Raises BadInput for anything other than the id of a user."""
    user = ids.number_or_none(ids.Kind.USER, id_)
    if user is None:
        raise BadInput(
            f"The entry {filters.shortened(id_)!r} of 'users' is not the id of a user. Use the 'id' of a user."
        )
    return user


def cursors(
    updates: Sequence[TimelineUpdate | ThreadUpdate | FilteredUpdate | NotificationUpdate], context: Context
) -> list[str]:
    """Return the cursors to resume from after these updates."""
    return [encode_cursor(CursorKind.LOG, update.number) for update in updates]


def items(updates: Sequence[ItemAdded | ReplyAdded], context: Context) -> list[Post]:
    """Return the posts and reposts of updates. Each also serves as the value of its edge."""
    return [update.post for update in updates]


async def changed_posts(updates: Sequence[PostChanged], context: Context) -> list[Post | None]:
    """Return the posts whose counts have changed; None if since deleted or hidden. One round trip.

    The watermark is read first, because the live cursors of the posts must not be newer than their counts.
    """
    await context.watermark()
    return await context.loaders.posts.fetch_many(update.post for update in updates)


def post_ids(updates: Sequence[PostRemoved | PostChanged], context: Context) -> list[str]:
    """Return the global ids of deleted or changed posts."""
    return [ids.encode(ids.Kind.POST, update.post) for update in updates]


def repost_ids(updates: Sequence[RepostRemoved], context: Context) -> list[str]:
    """Return the global ids of reposts that were undone."""
    return [ids.encode(ids.Kind.REPOST, update.post) for update in updates]


def author_ids(updates: Sequence[ItemRemoved], context: Context) -> list[str]:
    """Return the global ids of the authors of removed posts and reposts."""
    return [ids.encode(ids.Kind.USER, update.author) for update in updates]


def user_ids(updates: Sequence[AuthorAdded | AuthorRemoved | AuthorHidden], context: Context) -> list[str]:
    """Return the global ids of the users whose posts appear or disappear."""
    return [ids.encode(ids.Kind.USER, update.user) for update in updates]


async def users(updates: Sequence[AuthorAdded | AuthorRemoved], context: Context) -> list[User | None]:
    """Return the users whose posts appear or disappear; None if suspended. One round trip."""
    return await context.loaders.users.fetch_many(update.user for update in updates)


async def followers(updates: Sequence[UserFollowed | UserUnfollowed], context: Context) -> list[User | None]:
    """Return the users who followed or unfollowed. One round trip."""
    return await context.loaders.unchecked_users.fetch_many(update.follower for update in updates)


async def followees(updates: Sequence[UserFollowed | UserUnfollowed], context: Context) -> list[User | None]:
    """Return the users who were followed or unfollowed. One round trip."""
    return await context.loaders.unchecked_users.fetch_many(update.followee for update in updates)


def notifications(updates: Sequence[NotificationAdded], context: Context) -> list[Notification]:
    """Return the notifications of updates. A notification also serves as the value of its edge."""
    return [update.notification for update in updates]


def notification_feeds(
    updates: Sequence[NotificationAdded | NotificationsChanged], context: Context
) -> list[NotificationFeed]:
    """Return the viewer's notifications for each update."""
    return [NotificationFeed(context.require_viewer().user) for _ in updates]
