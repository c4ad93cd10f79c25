"""The fold: one function for each kind of event. The functions for relations are in `graph.relations`.

Each function adds one event to a `Content`. The result does not depend on the order of the events or on repetitions,
and equals the data that the projection scripts (`graph/scripts`) write to the store, before anything is trimmed or
archived.
"""

from collections.abc import Iterable
from typing import Any

from graph.fold.content import Account, Content, ListedPosts, ListUnderPost, NotificationGroups, Part, VersionedSet
from graph.fold.reading import Fold
from graph.log.account_events import UserDeleted, UserErased
from graph.log.events import (
    Event,
    EventBody,
    Liked,
    NotificationsRead,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    PostPublished,
    ProfileChanged,
    Reposted,
    SessionsEnded,
    Unliked,
    Unreposted,
    UserCreated,
    publication_of,
    repost_ended_by,
)
from graph.log.moderation_events import Reported, ReportsClosed, StoreRepaired, UserSuspended, UserUnsuspended
from graph.log.recipients import recipients
from graph.post_lists import LISTS_UNDER_POSTS, REPLIED, TIMELINE, Listable, PostList, lists_of
from graph.relations.register import RELATIONS

PARTS = {TIMELINE: Part.POSTS, REPLIED: Part.REPLIED, **dict.fromkeys(LISTS_UNDER_POSTS, Part.UNDER_POSTS)}
"""The part of the content that holds the lists, by kind of list."""


def fold(content: Content, events: Iterable[Event]) -> Content:
    """Add events to the content, and return the content. O(1) per event."""
    for event in events:
        fold_event(content, event.number, event.body)
        notify(content, event)
    return content


def fold_event(content: Content, number: int, body: EventBody) -> None:
    """Add an event to the content, but not to the notifications. O(1)."""
    FOLDS[type(body)](content, number, body)


def user_created(content: Content, number: int, body: UserCreated) -> None:
    """Create the account, unless the sign-up is void because the user has no credentials."""
    if number not in content.secrets or not content.includes(Part.ACCOUNT, number):
        return
    account = content.accounts.setdefault(number, Account())
    for name, value in (("id", str(number)), ("login", body.login), ("name", body.name), ("bio", body.bio)):
        account.set_field(name, value, number)
    account.login, account.nonce, account.secret = body.login, body.nonce, content.secrets[number] or ""


def profile_changed(content: Content, number: int, body: ProfileChanged) -> None:
    """Set the profile fields that the event changes."""
    if not content.includes(Part.ACCOUNT, body.user):
        return
    account = content.accounts.setdefault(body.user, Account())
    for name, value in body.changes():
        account.set_field(name, value, number)


def permission_granted(content: Content, number: int, body: PermissionGranted) -> None:
    """Set the permission to the event's number."""
    if content.includes(Part.ACCOUNT, body.user):
        content.accounts.setdefault(body.user, Account()).set_permission(body.permission, number)


def permission_revoked(content: Content, number: int, body: PermissionRevoked) -> None:
    """Set the permission to the event's number, negated."""
    if content.includes(Part.ACCOUNT, body.user):
        content.accounts.setdefault(body.user, Account()).set_permission(body.permission, -number)


def password_changed(content: Content, number: int, body: PasswordChanged) -> None:
    """Raise the number of the last change of the password."""
    if content.includes(Part.ACCOUNT, body.user):
        account = content.accounts.setdefault(body.user, Account())
        account.password = max(account.password, number)


def user_suspended(content: Content, number: int, body: UserSuspended) -> None:
    """Set the suspension to the event's number."""
    if content.includes(Part.ACCOUNT, body.user):
        content.accounts.setdefault(body.user, Account()).suspend(number)


def user_unsuspended(content: Content, number: int, body: UserUnsuspended) -> None:
    """Set the suspension to the event's number, negated."""
    if content.includes(Part.ACCOUNT, body.user):
        content.accounts.setdefault(body.user, Account()).suspend(-number)


def user_deleted(content: Content, number: int, body: UserDeleted) -> None:
    """Delete the account, and suspend the user, so that the user is hidden."""
    if content.includes(Part.ACCOUNT, body.user):
        account = content.accounts.setdefault(body.user, Account())
        account.suspend(number)
        account.deleted, account.login_hash = number, body.login_hash


def user_erased(content: Content, number: int, body: UserErased) -> None:
    """Record that the erasure is complete, even if the content has no accounts."""
    content.erased[body.user] = max(content.erased.get(body.user, 0), number)
    if content.includes(Part.ACCOUNT, body.user):
        account = content.accounts.setdefault(body.user, Account())
        account.erased = max(account.erased, number)


def nothing_expected(content: Content, number: int, body: Reported | ReportsClosed | StoreRepaired) -> None:
    """Do nothing: reports are read from the archive, and repairs concern only streams."""


def sessions_ended(content: Content, number: int, body: SessionsEnded) -> None:
    """Add the event's sessions to the sessions that must not exist."""
    if content.includes(Part.ACCOUNT, body.user):
        content.ended.setdefault(body.user, set()).update(body.sessions)


def post_published(content: Content, number: int, body: PostPublished) -> None:
    """Add the post to its lists."""
    for post_list, owner in lists_of(body):
        if not post_list.is_of_users:
            if content.includes(Part.UNDER_POSTS, owner):
                content.under_posts[post_list].setdefault(owner, ListUnderPost()).publish(number)
        elif content.includes(PARTS[post_list], owner):
            posts_of(content, post_list).setdefault(owner, ListedPosts()).publish(number, body)


def post_deleted(content: Content, number: int, body: PostDeleted) -> None:
    """Replace the post with a tombstone in its lists, and forget its likes."""
    end_post(content, number, body.post, body)


def end_post(content: Content, number: int, post: int, listable: Listable) -> None:
    """Replace a post with a tombstone in its lists, which `listable` determines, and forget its likes."""
    if content.includes(Part.POSTS, listable.author):
        content.posts.setdefault(listable.author, ListedPosts()).bury(post)
    for post_list, owner in lists_of(listable):
        if not post_list.is_of_users:
            if content.includes(Part.UNDER_POSTS, owner):
                content.under_posts[post_list].setdefault(owner, ListUnderPost()).delete(post, number)
        elif content.includes(PARTS[post_list], owner):
            posts_of(content, post_list).setdefault(owner, ListedPosts()).delete(post, number)


def reposted(content: Content, number: int, body: Reposted) -> None:
    """Add the repost to its lists, and the original to the posts that the user has reposted.

    If a user reposts an original again, the events do not show that the first repost is replaced; the archive removes
    its content.
    """
    published = publication_of(body)
    if published is not None:
        post_published(content, number, published)
    if content.includes(Part.REPOSTED, body.user):
        content.reposted.setdefault(body.user, VersionedSet()).add(body.post, number)


def unreposted(content: Content, number: int, body: Unreposted) -> None:
    """Replace the repost with a tombstone in its lists, and the original in the posts that the user has reposted."""
    end_post(content, number, body.repost, repost_ended_by(body))
    if content.includes(Part.REPOSTED, body.user):
        content.reposted.setdefault(body.user, VersionedSet()).remove(body.post, number)


def posts_of(content: Content, post_list: PostList) -> dict[int, ListedPosts]:
    """Return the lists of one kind by user."""
    return content.posts if post_list is TIMELINE else content.replied


def liked(content: Content, number: int, body: Liked) -> None:
    """Add the like to the set of the post and the set of the user."""
    if content.includes(Part.POSTS, body.author):
        content.posts.setdefault(body.author, ListedPosts()).likes_of(body.post).add(body.user, number)
    if content.includes(Part.LIKED, body.user):
        content.liked.setdefault(body.user, VersionedSet()).add(body.post, number)


def unliked(content: Content, number: int, body: Unliked) -> None:
    """Replace the like with a tombstone in both sets."""
    if content.includes(Part.POSTS, body.author):
        content.posts.setdefault(body.author, ListedPosts()).likes_of(body.post).remove(body.user, number)
    if content.includes(Part.LIKED, body.user):
        content.liked.setdefault(body.user, VersionedSet()).remove(body.post, number)


def notifications_read(content: Content, number: int, body: NotificationsRead) -> None:
    """Raise the number up to which the user's notifications are read."""
    if content.includes(Part.NOTIFICATIONS, body.user):
        held = content.notifications.setdefault(body.user, NotificationGroups())
        held.read_up_to = max(held.read_up_to, min(number, body.upto))


def notify(content: Content, event: Event) -> None:
    """Add the event to the notifications of its recipients."""
    for user, group in recipients(event):
        if content.includes(Part.NOTIFICATIONS, user):
            content.notifications.setdefault(user, NotificationGroups()).add(group, event.number)


FOLDS: dict[type[Any], Fold] = {
    **{kind: relation.fold for relation in RELATIONS for kind in relation.kinds},
    UserCreated: user_created,
    ProfileChanged: profile_changed,
    PermissionGranted: permission_granted,
    PermissionRevoked: permission_revoked,
    PasswordChanged: password_changed,
    UserSuspended: user_suspended,
    UserUnsuspended: user_unsuspended,
    UserDeleted: user_deleted,
    UserErased: user_erased,
    Reported: nothing_expected,
    ReportsClosed: nothing_expected,
    StoreRepaired: nothing_expected,
    SessionsEnded: sessions_ended,
    PostPublished: post_published,
    PostDeleted: post_deleted,
    Reposted: reposted,
    Unreposted: unreposted,
    Liked: liked,
    Unliked: unliked,
    NotificationsRead: notifications_read,
}
"""The function that folds each kind of event."""
