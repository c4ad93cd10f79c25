"""The rows of users and posts in the store, and the records built from them.

A record of a post holds the common fields of its PostPublished event as separate columns, and the others as one JSON
object, `details`, which most posts lack. Reading a page therefore takes few columns. The record also holds the post's
counts, which outlive the other fields: the record of an archived post has counts only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias

import orjson

from graph import keys
from graph.log.encoding import BODY_FIELDS, without_defaults
from graph.log.events import PostPublished
from graph.model import (
    NO_DETAILS,
    Counts,
    Details,
    Location,
    Post,
    User,
    details_of,
    new_post,
    new_user,
    post_or_repost,
)
from graph.store.commands import Command
from graph.store.recall import LookUp

POST_COLUMNS = (
    "author",
    "text",
    "platform",
    "latitude",
    "longitude",
    "details",
    *keys.COUNT_FIELDS,
    "deleted",
)
COMMON: dict[str, Callable[[str], Any]] = {
    "author": int,
    "text": str,
    "platform": str,
    "latitude": float,
    "longitude": float,
    "request": str,
}
"""The fields of a PostPublished event that a record holds as separate columns, with their conversions from strings.
Pages do not read the request."""
DETAILS = tuple(field.name for field in fields(PostPublished) if field.name not in COMMON)
AUTHOR_COLUMNS = ("author", "deleted")
USER_COLUMNS = ("id", "login", "name", "bio", "avatar_url", "website_url")


class SplitPosts(NamedTuple):
    """Posts by id, ids of deleted posts, ids without a record, and the counts of posts that have only counts."""

    posts: dict[int, Post]
    deleted: list[int]
    absent: list[int]
    counts: dict[int, Counts]


class Deleted:
    """The tombstone of a deleted post, in place of its record."""


DELETED = Deleted()
Stored: TypeAlias = Post | Deleted | Counts | None
"""The content of a row of POST_COLUMNS: a post, a tombstone, the counts of a post without a record, or nothing."""


def read_post(post: int) -> Command:
    """Return the command that reads the POST_COLUMNS of a post."""
    return ("HMGET", keys.post(post), *POST_COLUMNS)


def as_post(post: int, row: Sequence[Any]) -> Post | None:
    """Return the post in a row of POST_COLUMNS, or None for a tombstone or an empty row."""
    [stored] = stored_posts([post], [row])
    return stored if isinstance(stored, Post) else None


def stored_posts(ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> list[Stored]:
    """Return the content of each row of POST_COLUMNS. O(n)."""
    found: list[Stored] = []
    for id_, row in zip(ids, rows, strict=True):
        author, text, platform, latitude, longitude, details, replies, reposts, quotes, likes, gone = row
        if gone is not None:
            found.append(DELETED)
        elif author is not None:
            location = None if latitude is None or longitude is None else Location(float(latitude), float(longitude))
            counted = (int(replies or 0), int(reposts or 0), int(quotes or 0), int(likes or 0))
            common = (id_, int(author), text, platform, location, *counted)
            found.append(
                new_post((*common, *NO_DETAILS))
                if details is None
                else post_or_repost((*common, *parse_details(details)))
            )
        elif replies or reposts or quotes or likes:
            found.append(Counts(int(replies or 0), int(reposts or 0), int(quotes or 0), int(likes or 0)))
        else:
            found.append(None)
    return found


def split_posts(ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> SplitPosts:
    """Return the content of rows of POST_COLUMNS, grouped by kind. O(n)."""
    return split_stored(ids, stored_posts(ids, rows))


def split_stored(ids: Sequence[int], found: Sequence[Stored]) -> SplitPosts:
    """Return the result of `stored_posts`, grouped by kind. O(n)."""
    posts: dict[int, Post] = {}
    deleted: list[int] = []
    absent: list[int] = []
    counts: dict[int, Counts] = {}
    for id_, stored in zip(ids, found, strict=True):
        if isinstance(stored, Post):
            posts[id_] = stored
        elif isinstance(stored, Deleted):
            deleted.append(id_)
        else:
            absent.append(id_)
            if stored is not None:
                counts[id_] = stored
    return SplitPosts(posts, deleted, absent, counts)


def authors_in(ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> tuple[dict[int, int], list[int]]:
    """Return the authors of the posts in rows of AUTHOR_COLUMNS, and the ids of absent posts. O(n)."""
    found = {id_: author for id_, (author, gone) in zip(ids, rows, strict=True) if gone is None}
    return (
        {id_: int(author) for id_, author in found.items() if author is not None},
        [id_ for id_, author in found.items() if author is None],
    )


def parse_details(details: str) -> Details:
    """Return the details of a post, or NO_DETAILS if they are damaged."""
    try:
        return details_of(orjson.loads(details))
    except (AttributeError, TypeError, ValueError):
        return NO_DETAILS


def with_counts(post: Post, counts: Counts) -> Post:
    """Return a post with these counts."""
    return post._replace(**counts._asdict())


def published_post(number: int, body: PostPublished) -> Post:
    """Return the post that a PostPublished event created, without counts."""
    located = body.latitude is not None and body.longitude is not None
    location = Location(float(body.latitude or 0), float(body.longitude or 0)) if located else None
    details = (body.reply_to, body.root, body.repost_of, body.mentions, body.attachments, body.ancestors)
    common = (number, body.author, body.text, body.platform, location, *Counts())
    authors = (body.reply_to_author, body.repost_of_author, body.root_author)
    return post_or_repost((*common, *details, *authors, body.listed))


def record_fields(number: int, body: PostPublished) -> list[str]:
    """Return a post's record as a flat list of fields and values. It holds all fields of the event."""
    words = ["id", str(number)]
    for name in COMMON:
        value = getattr(body, name)
        if value is not None:
            words += (name, str(value))
    details = without_defaults(PostPublished, {name: getattr(body, name) for name in DETAILS})
    if details:
        words += ("details", orjson.dumps(details).decode())
    return words


def as_published(record: Mapping[str, str]) -> PostPublished | None:
    """Return the event body from which a complete record was written, or None for a tombstone or an empty record.

    Raises ValueError for a damaged record.
    """
    if "deleted" in record or "author" not in record:
        return None
    try:
        values = {name: convert(record[name]) for name, convert in COMMON.items() if name in record}
        details = orjson.loads(record.get("details", "{}"))
        converters = dict(BODY_FIELDS[PostPublished])
        return PostPublished(**values, **{name: converters[name](details[name]) for name in DETAILS if name in details})
    except (TypeError, ValueError) as error:
        raise ValueError(f"The record of post {record.get('id')} is damaged.") from error


def as_users(rows: Sequence[Sequence[str | None]]) -> list[User | None]:
    """Return the users in rows of USER_COLUMNS, or None for an empty row."""
    return [
        None
        if id_ is None
        else new_user((int(id_), login or "", name or "", bio or "", avatar_url or None, website_url or None))
        for id_, login, name, bio, avatar_url, website_url in rows
    ]


STORED_POSTS: LookUp[Stored] = LookUp("HMGET", keys.post, POST_COLUMNS, stored_posts)
STORED_USERS: LookUp[User | None] = LookUp("HMGET", keys.user, USER_COLUMNS, lambda _, rows: as_users(rows))
"""The look-ups of the records of posts and users."""
