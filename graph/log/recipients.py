"""The recipients of notifications: which users an event notifies, and in which group."""

from collections.abc import Iterator
from typing import Protocol

from graph.log.events import Event, Followed, Liked, PostPublished, Reposted
from graph.log.notification_groups import Group, NotificationKind, day_of

MAX_MENTIONS = 20
"""The maximum number of users who are notified because a post mentions them."""


class Notifying(Protocol):
    """The fields of a post, or of its PostPublished event, that decide whom it notifies. Not used for plain reposts."""

    @property
    def author(self) -> int: ...  # noqa: D102
    @property
    def mentions(self) -> tuple[int, ...]: ...  # noqa: D102
    @property
    def reply_to_author(self) -> int | None: ...  # noqa: D102
    @property
    def repost_of_author(self) -> int | None: ...  # noqa: D102


def recipients(event: Event) -> Iterator[tuple[int, Group]]:
    """Yield the users whom an event notifies, each with one group.

    Users are not notified of their own actions. A like, follow or repost that renews an earlier one notifies nobody,
    because the earlier one did. The group of an event does not depend on other events, so projections may apply or skip
    events in any order.
    """
    if not is_renewed(event):
        yield from concerned(event)


def is_renewed(event: Event) -> bool:
    """Return True if an event renews a like, follow or repost that the user had undone."""
    return isinstance(event.body, Followed | Liked | Reposted) and event.body.renewed


def concerned(event: Event) -> Iterator[tuple[int, Group]]:
    """Yield the users whose notifications may show an event, even if it does not notify them, each with one group."""
    match event.body:
        case Followed(followee=followee):
            yield followee, Group(NotificationKind.FOLLOW, day_of(event.number))
        case Liked(user, post, author) if user != author:
            yield author, Group(NotificationKind.LIKE, post)
        case Reposted(user, post, author) if user != author:
            yield author, Group(NotificationKind.REPOST, post)
        case PostPublished() as body:
            for user, kind in recipients_of_post(body).items():
                yield user, Group(kind, event.number)
        case _:
            pass


def recipients_of_post(body: Notifying) -> dict[int, NotificationKind]:
    """Return the users whom a post notifies, at most 22, each with one reason: reply before quote before mention."""
    found: dict[int, NotificationKind] = {}
    for user in body.mentions[:MAX_MENTIONS]:
        found[user] = NotificationKind.MENTION
    if body.repost_of_author is not None:
        found[body.repost_of_author] = NotificationKind.QUOTE
    if body.reply_to_author is not None:
        found[body.reply_to_author] = NotificationKind.REPLY
    found.pop(body.author, None)
    return found
