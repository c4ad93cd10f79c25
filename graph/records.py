"""The rows of users and posts in the store, and the records built from them.

A record of a post holds the common fields of its PostPublished event by themselves, and the others as one JSON object,
`details`, which most posts lack. So a page reads few columns. The record also holds the post's counts, which outlive
the other fields: the record of an archived post has counts only.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import orjson

from graph import keys
from graph.log.encoding import BODY_FIELDS, without_defaults
from graph.log.events import PostPublished
from graph.model import NO_DETAILS, Counts, Details, Location, Post, User, details_of, new_post, new_user
from graph.store.commands import Command

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
}
"""The fields of a record that hold those of its PostPublished event, and how they are converted back."""
DETAILS = tuple(field.name for field in fields(PostPublished) if field.name not in COMMON)
USER_COLUMNS = ("id", "login", "name", "bio", "avatar_url", "website_url")


class SplitPosts(NamedTuple):
    """Posts by id, the ids of deleted posts, the ids without a record, and the counts of those that have some."""

    posts: dict[int, Post]
    deleted: list[int]
    absent: list[int]
    counts: dict[int, Counts]


def read_post(post: int) -> Command:
    """Return the command that reads the POST_COLUMNS of a post."""
    return ("HMGET", keys.post(post), *POST_COLUMNS)


def as_post(post: int, row: Sequence[Any]) -> Post | None:
    """Return the post in a row of POST_COLUMNS, or None for a tombstone or an empty row."""
    return split_posts([post], [row]).posts.get(post)


def split_posts(ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> SplitPosts:
    """Return what rows of POST_COLUMNS hold. O(n)."""
    posts: dict[int, Post] = {}
    deleted: list[int] = []
    absent: list[int] = []
    counts: dict[int, Counts] = {}
    for id_, row in zip(ids, rows, strict=True):
        author, text, platform, latitude, longitude, details, replies, reposts, likes, gone = row
        if author is not None:
            location = None if latitude is None or longitude is None else Location(float(latitude), float(longitude))
            common = (id_, int(author), text, platform, location, int(replies or 0), int(reposts or 0), int(likes or 0))
            posts[id_] = new_post((*common, *(NO_DETAILS if details is None else parse_details(details))))
        if gone is not None:
            deleted.append(id_)
        elif author is None:
            absent.append(id_)
            if replies or reposts or likes:
                counts[id_] = Counts(int(replies or 0), int(reposts or 0), int(likes or 0))
    return SplitPosts(posts, deleted, absent, counts)


def parse_details(details: str) -> Details:
    """Return the details of a post; none if they are damaged."""
    try:
        return details_of(orjson.loads(details))
    except (AttributeError, TypeError, ValueError):
        return NO_DETAILS


def with_counts(post: Post, counts: Counts) -> Post:
    """Return a post with other counts."""
    return post._replace(replies=counts.replies, reposts=counts.reposts, likes=counts.likes)


def published_post(number: int, body: PostPublished) -> Post:
    """Return the post that a PostPublished event created, without counts."""
    located = body.latitude is not None and body.longitude is not None
    location = Location(float(body.latitude or 0), float(body.longitude or 0)) if located else None
    details = (body.reply_to, body.root, body.repost_of, body.mentions, body.attachments, body.ancestors)
    common = (number, body.author, body.text, body.platform, location, 0, 0, 0)
    authors = (body.reply_to_author, body.repost_of_author, body.root_author)
    return new_post((*common, *details, *authors, body.listed))


def record_fields(number: int, body: PostPublished) -> list[str]:
    """Return a post's record as a flat list of fields and values, with everything that its event holds."""
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
    """Return the body of the event that a whole record was written from, or None for a tombstone or an empty record.

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
    """Return the users in rows of USER_COLUMNS, None for an empty row."""
    return [
        None
        if id_ is None
        else new_user((int(id_), login or "", name or "", bio or "", avatar_url or None, website_url or None))
        for id_, login, name, bio, avatar_url, website_url in rows
    ]
