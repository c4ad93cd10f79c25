"""Resolvers of the viewer: the logged-in user, with the data that only this user can see."""

from collections.abc import Awaitable, Sequence

from graph.log.notification_groups import NotificationFeed
from graph.model import Timeline, TimelineKind, User
from resolvers import ids
from resolvers.context import Context, Viewer
from resolvers.references import Reference, refer


def viewer(context: Context) -> Viewer | None:
    """Return the viewer, or None for an anonymous request. No round trip."""
    return context.viewer


def global_ids(viewers: Sequence[Viewer], context: Context) -> list[str]:
    """Return the global ids of viewers."""
    return ids.encode_all(ids.Kind.VIEWER, [each.user for each in viewers])


def users(viewers: Sequence[Viewer], context: Context) -> Awaitable[list[User | None]]:
    """Return the users who are logged in. One round trip."""
    return context.loaders.unchecked_users.fetch_many([each.user for each in viewers])


def user_references(viewers: Sequence[Viewer], context: Context) -> list[Reference]:
    """Return references to the users who are logged in."""
    return refer([each.user for each in viewers])


def home_timelines(viewers: Sequence[Viewer], context: Context) -> list[Timeline]:
    """Return the home timelines of viewers."""
    return [Timeline(each.user, TimelineKind.HOME) for each in viewers]


def notification_feeds(viewers: Sequence[Viewer], context: Context) -> list[NotificationFeed]:
    """Return the notifications of viewers. No round trip."""
    return [NotificationFeed(each.user) for each in viewers]
