"""The rows of users and posts in the store, and the records built from them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from graph import keys
from graph.log.events import PostPublished
from graph.model import Location, Post, User, new_post, new_user
from graph.store.commands import Command


def parse_list(text: str) -> tuple[Any, ...]:
    """Return the items of a JSON array."""
    return tuple(orjson.loads(text))


POST_COLUMNS = ("author", "text", "platform", "latitude", "longitude", "deleted")
PUBLISHED: dict[str, Callable[[str], Any]] = {
    "author": int,
    "text": str,
    "platform": str,
    "latitude": float,
    "longitude": float,
    "reply_to": int,
    "root": int,
    "repost_of": int,
    "mentions": parse_list,
    "attachments": parse_list,
}
"""The fields of a record that hold those of its PostPublished event, and how they are converted back."""
USER_COLUMNS = ("id", "login", "name", "bio", "avatar_url", "website_url")


def read_post(post: int) -> Command:
    """Return the command that reads the POST_COLUMNS of a post."""
    return ("HMGET", keys.post(post), *POST_COLUMNS)


def as_post(post: int, row: Sequence[Any]) -> Post | None:
    """Return the post in a row of POST_COLUMNS, or None for a tombstone or an empty row."""
    author, text, platform, latitude, longitude, _ = row
    if author is None:
        return None
    location = None if latitude is None or longitude is None else Location(float(latitude), float(longitude))
    return Post(post, int(author), text, platform, location)


def split_posts(ids: Sequence[int], rows: Sequence[Sequence[Any]]) -> tuple[dict[int, Post], list[int], list[int]]:
    """Return the posts by id, the ids of deleted posts, and the ids that the store does not know."""
    posts: dict[int, Post] = {}
    deleted: list[int] = []
    absent: list[int] = []
    for id_, (author, text, platform, latitude, longitude, gone) in zip(ids, rows, strict=True):
        if author is not None:
            location = None if latitude is None or longitude is None else Location(float(latitude), float(longitude))
            posts[id_] = new_post((id_, int(author), text, platform, location))
        if gone is not None:
            deleted.append(id_)
        elif author is None:
            absent.append(id_)
    return posts, deleted, absent


def published_post(number: int, body: PostPublished) -> Post:
    """Return the post that a PostPublished event created."""
    located = body.latitude is not None and body.longitude is not None
    location = Location(float(body.latitude or 0), float(body.longitude or 0)) if located else None
    return Post(number, body.author, body.text, body.platform, location)


def record_fields(number: int, body: PostPublished) -> list[str]:
    """Return a post's record as a flat list of fields and values, with everything that its event holds."""
    values = {name: getattr(body, name) for name in PUBLISHED}
    words = ["id", str(number)]
    for name, value in values.items():
        if isinstance(value, tuple):
            words += (name, orjson.dumps(value).decode()) if value else ()
        elif value is not None:
            words += (name, str(value))
    return words


def as_published(record: Mapping[str, str]) -> PostPublished | None:
    """Return the body of the event that a whole record was written from, or None for a tombstone or an empty record.

    Raises ValueError for a damaged record.
    """
    if "deleted" in record or "author" not in record:
        return None
    try:
        return PostPublished(**{name: convert(record[name]) for name, convert in PUBLISHED.items() if name in record})
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
