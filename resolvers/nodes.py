"""Objects by global id, for clients that refetch their cached objects."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

import strawberry

from graph.errors import ArchiveUnavailable
from graph.log.notification_groups import Group, Notification, NotificationFeed, group_of
from graph.model import Post, Relationship, Repost, Session, Timeline, TimelineKind, User, UserList
from resolvers import ids
from resolvers.context import Context, Viewer
from resolvers.errors import BadInput

MAX_NODES = 100
USER_KINDS = (ids.Kind.USER, ids.Kind.USER_TIMELINE, ids.Kind.REPLIES_TIMELINE, ids.Kind.RELATIONSHIP)
"""The kinds whose last number is the id of a user who must exist."""
POST_KINDS = (ids.Kind.POST, ids.Kind.REPOST)
"""The kinds whose number is the id of a post or a repost."""
LIST_KINDS = (ids.Kind.LIST, ids.Kind.LIST_TIMELINE)
"""The kinds whose number is the id of a list, which must be the viewer's."""

Record: TypeAlias = (
    User | Viewer | Post | Timeline | Relationship | Session | UserList | NotificationFeed | Notification | None
)


async def node(
    context: Context,
    *,
    id: Annotated[strawberry.ID, strawberry.argument(description="The global id to look up.")],
) -> Record:
    """Return the object with a global id, or None if it does not exist or is not visible to the viewer.

    One round trip, or two for a notification. Raises BadInput for a malformed id.
    """
    [record] = await load_nodes(context, [ids.decode(id)])
    if isinstance(record, Exception):
        raise record
    return record


async def nodes(
    context: Context,
    *,
    keys: Annotated[
        list[strawberry.ID],
        strawberry.argument(name="ids", description="The global ids to look up, at most 100."),
    ],
) -> Sequence[Record | Exception]:
    """Return the objects with these global ids, in their order, or the error of each malformed id.

    One round trip, or two for notifications. Raises BadInput for more than 100 ids.
    """
    if len(keys) > MAX_NODES:
        raise BadInput(f"'ids' has {len(keys)} entries; at most {MAX_NODES} are allowed. Send several requests.")
    decoded = [decode_or_error(key) for key in keys]
    records = iter(await load_nodes(context, [each for each in decoded if isinstance(each, ids.GlobalId)]))
    return [next(records) if isinstance(each, ids.GlobalId) else each for each in decoded]


def decode_or_error(text: str) -> ids.GlobalId | BadInput:
    """Return the decoded id, or the error if it is malformed."""
    try:
        return ids.decode(text)
    except BadInput as error:
        return error


async def load_nodes(context: Context, keys: Sequence[ids.GlobalId]) -> list[Record | Exception]:
    """Return each object, or the error if its look-up failed; None if it does not exist or is not visible.

    The watermark for live cursors is read first, because it must not be newer than the counts of a post.
    """
    await context.watermark()
    user_ids = [key.numbers[-1] for key in keys if key.kind in USER_KINDS]
    post_ids = [key.numbers[0] for key in keys if key.kind in POST_KINDS]
    subjects = [key.numbers[1] for key in keys if _is_viewers_relationship(context, key)]
    loaders = context.loaders
    viewers = [context.viewer.user] if context.viewer and any(key.kind is ids.Kind.SESSION for key in keys) else []
    groups = [group for key in keys if (group := _viewers_group(context, key)) is not None]
    lists = [key.numbers[0] for key in keys if key.kind in LIST_KINDS and context.viewer]
    public = [key for key in keys if key.kind is ids.Kind.PUBLIC_TIMELINE][:1]
    lookups: list[tuple[list[Any], Awaitable[list[Any]]]] = [
        (user_ids, loaders.users.load_many(user_ids)),
        (post_ids, loaders.posts.load_many(post_ids)),
        (subjects, loaders.relationships.load_many(subjects) if subjects else _nothing()),
        (viewers, loaders.sessions.load_many(viewers)),
        (groups, loaders.notifications.load_many(groups) if groups else _nothing()),
        (lists, loaders.lists.load_many(lists) if lists else _nothing()),
        (public, load_public(context, public)),
    ]
    loaded = await asyncio.gather(*(lookup for _, lookup in lookups))
    users, posts, relationships, loaded_sessions, notifications, found_lists, timelines = (
        dict(zip(wanted, found, strict=True)) for (wanted, _), found in zip(lookups, loaded, strict=True)
    )
    sessions: dict[int, Session] = {each.id: each for found in loaded_sessions.values() for each in found}
    return [
        _visible_list(key, found_lists)
        if key.kind in LIST_KINDS
        else timelines[key]
        if key in timelines
        else _visible(context, key, users, posts, relationships, sessions, notifications)
        for key in keys
    ]


def _visible_list(key: ids.GlobalId, lists: Mapping[int, UserList | None]) -> Record:
    found = lists.get(key.numbers[0])
    return found if found is None or key.kind is ids.Kind.LIST else Timeline(found.id, TimelineKind.LIST)


async def load_public(context: Context, keys: Sequence[ids.GlobalId]) -> list[Timeline | ArchiveUnavailable]:
    """Return the public timeline for each key, at most one, or the error if the archive does not answer. One query."""
    try:
        return [await context.graph.public_timeline.begin() for _ in keys]
    except ArchiveUnavailable as outage:
        return [outage]


def _visible(
    context: Context,
    key: ids.GlobalId,
    users: Mapping[int, User | None],
    posts: Mapping[int, Post | None],
    relationships: Mapping[int, Relationship],
    sessions: Mapping[int, Session],
    notifications: Mapping[Group, Notification | None],
) -> Record:
    match key.kind, key.numbers:
        case ids.Kind.USER, (user,):
            return users[user]
        case ids.Kind.VIEWER, (user,) if user == context.viewer_id:
            return context.viewer
        case ids.Kind.POST | ids.Kind.REPOST as kind, (post,):
            found = posts[post]
            return found if isinstance(found, Repost) is (kind is ids.Kind.REPOST) else None
        case ids.Kind.USER_TIMELINE, (owner,):
            return None if users[owner] is None else Timeline(owner, TimelineKind.USER)
        case ids.Kind.REPLIES_TIMELINE, (owner,):
            return None if users[owner] is None else Timeline(owner, TimelineKind.REPLIES)
        case ids.Kind.HOME_TIMELINE, (owner,) if owner == context.viewer_id:
            return Timeline(owner, TimelineKind.HOME)
        case ids.Kind.RELATIONSHIP, (_, subject) if _is_viewers_relationship(context, key):
            return None if users[subject] is None else relationships[subject]
        case ids.Kind.SESSION, (session,):
            return sessions.get(session)
        case ids.Kind.NOTIFICATION_FEED, (owner,) if owner == context.viewer_id:
            return NotificationFeed(owner)
        case ids.Kind.NOTIFICATION, _ if (group := _viewers_group(context, key)) is not None:
            return notifications[group]
        case _:
            return None


async def _nothing() -> list[Any]:
    return []


def _viewers_group(context: Context, key: ids.GlobalId) -> Group | None:
    """Return the group of events if the global id is that of one of the viewer's notifications, else None."""
    if key.kind is not ids.Kind.NOTIFICATION or key.numbers[0] != context.viewer_id:
        return None
    _, code, subject = key.numbers
    return group_of(code, subject)


def _is_viewers_relationship(context: Context, key: ids.GlobalId) -> bool:
    return key.kind is ids.Kind.RELATIONSHIP and key.numbers[0] == context.viewer_id
