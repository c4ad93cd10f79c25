"""The viewer: the user who is logged in."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import strawberry

from executor.fields import batched
from resolvers import blocks, bookmarks, context, likes, lists, sessions, viewers
from schema.blocks import UserConnection
from schema.bookmark import BookmarkConnection
from schema.like import LikedPostConnection
from schema.node import Node
from schema.notification import NotificationFeed
from schema.timeline import Timeline
from schema.user import User
from schema.user_list import UserList

if TYPE_CHECKING:
    from schema.account import Session


@strawberry.type(
    description="The user who is logged in, with the data that only this user can see. A field that cannot be read is "
    "null, and `errors` gives the reason."
)
class Viewer(Node):
    """Backed by `resolvers.context.Viewer`."""

    record: ClassVar[type] = context.Viewer

    id: strawberry.ID = batched(
        viewers.global_ids,
        independent=True,
        description="The global id of the viewer, which differs from the id of the user.",
    )
    user: User = batched(
        viewers.users, references=viewers.user_references, description="The user, as other users see them."
    )
    home_timeline: Timeline | None = batched(
        viewers.home_timelines,
        description="The posts and reposts of the viewer and of the users that the viewer follows.",
    )
    notifications: NotificationFeed | None = batched(
        viewers.notification_feeds, description="The viewer's notifications."
    )
    lists: list[UserList] | None = batched(
        lists.lists, description="The viewer's lists of users, newest first, at most 50."
    )
    sessions: list[Annotated["Session", strawberry.lazy("schema.account")]] | None = batched(
        sessions.sessions, description="The viewer's active sessions, newest first, at most 100."
    )
    liked_posts: LikedPostConnection | None = batched(
        likes.liked_posts,
        description="The posts that the viewer likes, most recent like first. Requires `first` or `last`.",
    )
    bookmarks: BookmarkConnection | None = batched(
        bookmarks.bookmarks,
        description="The posts that the viewer has bookmarked, newest bookmark first. Requires `first` or `last`.",
    )
    muted_users: UserConnection | None = batched(
        blocks.muted_users,
        description="The users whom the viewer has muted, newest mute first. Requires `first` or `last`.",
    )
    blocked_users: UserConnection | None = batched(
        blocks.blocked_users,
        description="The users whom the viewer has blocked, newest block first. Requires `first` or `last`.",
    )
