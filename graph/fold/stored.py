"""The keys of the store that hold some content, and their values (see `graph.keys`).

Tombstones up to a number can be left out. The tombstone floor, which replaces trimmed tombstones, is never among the
values: it protects against late events only.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from graph import keys
from graph.fold.content import Account, Content, Posts, VersionedSet
from graph.log.events import PostPublished
from graph.records import record_fields


class Hash(dict[str, str]):
    """The fields of a hash."""


class SortedSet(dict[str, int]):
    """The members of a sorted set, with their scores."""


Value: TypeAlias = Hash | SortedSet | str
"""The value of a key. Empty hashes and sorted sets do not occur: the key does not exist."""

Stored: TypeAlias = Iterator[tuple[str, Value]]
"""Keys with their values."""


def stored(
    content: Content,
    tombstones_after: int = 0,
    floors: Mapping[int, int] | None = None,
    cold: Mapping[int, int] | None = None,
) -> Stored:
    """Yield all keys of the content, with tombstones whose numbers are higher than `tombstones_after`.

    `floors` has the archive floors of authors, and `cold` the numbers of their posts up to the floor, if not 0.
    """
    floors, cold = floors or {}, cold or {}
    for user, account in content.accounts.items():
        yield from account_keys(user, account)
    for user, following in content.following.items():
        yield from versioned_set_keys(keys.following, user, following, tombstones_after)
    for user, followers in content.followers.items():
        yield from versioned_set_keys(keys.followers, user, followers, tombstones_after)
    for user, liked in content.liked.items():
        yield from versioned_set_keys(keys.liked, user, liked, tombstones_after)
    for author, posts in content.posts.items():
        yield from timeline_keys(author, posts, floors.get(author, 0), cold.get(author, 0), tombstones_after)


def account_keys(user: int, account: Account) -> Stored:
    """Yield the keys of a user's profile and login."""
    fields = Hash()
    for name, (number, value) in account.fields.items():
        fields[name], fields[f"{name}:at"] = value, str(number)
    for permission, number in account.permissions.items():
        fields[keys.permission(permission)] = str(number)
    if account.password:
        fields["password"] = str(account.password)
    if fields:
        yield keys.user(user), fields
    if account.login is not None:
        yield keys.login(account.login), login_fields(user, account)


def login_fields(user: int, account: Account) -> Hash:
    """Return the fields of the login of a user."""
    fields = Hash(secret=account.secret, nonce=account.nonce, user=str(user))
    if account.password:
        fields["secret:at"] = str(account.password)
    return fields


def versioned_set_keys(key: Callable[[int], str], owner: int, held: VersionedSet, tombstones_after: int = 0) -> Stored:
    """Yield the keys of the members and the tombstones of a versioned set."""
    name = key(owner)
    if held.members:
        yield name, SortedSet({str(member): number for member, number in held.members.items()})
    yield from tombstone_keys(name, held.tombstones, tombstones_after)


def tombstone_keys(versioned_set: str, tombstones: Mapping[int, int], tombstones_after: int) -> Stored:
    """Yield the key of the tombstones of a versioned set."""
    kept = SortedSet({str(member): number for member, number in tombstones.items() if number > tombstones_after})
    if kept:
        yield keys.gone(versioned_set), kept


def timeline_keys(author: int, posts: Posts, floor: int = 0, cold: int = 0, tombstones_after: int = 0) -> Stored:
    """Yield the keys of an author's timeline, and of the records, tombstones and likes of its posts.

    Posts up to the archive floor are left out.
    """
    name = keys.posts(author)
    hot = {post: body for post, body in posts.live.items() if post > floor}
    if hot or floor:
        yield name, SortedSet({"f": floor} | {str(post): post for post in hot})
    yield from tombstone_keys(name, posts.deleted, tombstones_after)
    if cold:
        yield keys.cold(author), str(cold)
    for post in {**hot, **posts.likes}:
        likes = posts.likes.get(post, VersionedSet())
        fields = Hash(record(post, hot[post]) if post in hot else {})
        if likes.members:
            fields["likes"] = str(len(likes.members))
        if fields:
            yield keys.post(post), fields
        yield from versioned_set_keys(keys.likes, post, likes, tombstones_after)
    for post, number in posts.deleted.items():
        if number > tombstones_after:
            yield keys.post(post), Hash(deleted=str(number))


def record(post: int, body: PostPublished) -> Hash:
    """Return the record of a live post."""
    words = record_fields(post, body)
    return Hash(zip(words[::2], words[1::2], strict=True))
