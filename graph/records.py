"""The rows of users and posts in the store, and the records built from them."""

from collections.abc import Sequence
from typing import Any

from graph import keys
from graph.log.events import PostPublished
from graph.model import Location, Post, User, new_post, new_user
from graph.store.commands import Command

POST_COLUMNS = ("author", "text", "platform", "latitude", "longitude", "deleted")
USER_COLUMNS = ("id", "login", "name", "bio")


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


def as_users(rows: Sequence[Sequence[str | None]]) -> list[User | None]:
    """Return the users in rows of USER_COLUMNS, None for an empty row."""
    return [
        None if id_ is None else new_user((int(id_), login or "", name or "", bio or ""))
        for id_, login, name, bio in rows
    ]
