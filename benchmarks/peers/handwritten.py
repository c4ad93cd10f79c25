"""Hand-written answers to the known queries, without GraphQL: the fewest round trips, and dicts for orjson.

A document is recognised by its text. Only the selected columns are read. Values that could be cached only in a small
world, such as the base64 of ids, are not cached.
"""

import time
from binascii import b2a_base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Protocol, TypeAlias

from benchmarks.peers import queries

Json: TypeAlias = dict[str, Any]

MUTUAL, FOLLOWING, FOLLOWED_BY, STRANGER, YOU = (
    {"state": state} for state in ("MUTUAL", "FOLLOWING", "FOLLOWED_BY", "STRANGER", "YOU")
)
EPOCH = date(2020, 1, 1)
SEQUENCE_BITS = 12
DAY, MINUTE = 86_400_000, 60_000  # milliseconds
DAYS: dict[int, str] = {}
MINUTES = [f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(24 * 60)]
SECONDS = [f"{ms // 1000:02}.{ms % 1000:03}Z" for ms in range(MINUTE)]


class Ended(Exception):
    """The session of a token has ended."""


class Client(Protocol):
    """A client of the store, with commands in the form that it sends."""

    def read(self, commands: list[Any], count: int) -> Awaitable[list[Any]]:
        """Send commands in one round trip and return their replies."""

    def session(self, viewer: str, session: str) -> list[Any]:
        """Return the command that reads when a session expires."""

    def newest(self, key: str, count: int) -> list[Any]:
        """Return the command for the newest members of a sorted set."""

    def newest_scored(self, key: str, count: int) -> list[Any]:
        """Return the command for the newest members of a sorted set with their scores."""

    def posts(self, ids: Sequence[str]) -> list[Any]:
        """Return a command for each post, which reads its author, text and platform."""

    def names(self, ids: Sequence[str]) -> list[Any]:
        """Return a command for each user, which reads the login and the name."""

    def users(self, ids: Sequence[str]) -> list[Any]:
        """Return the commands for users, three replies each: login and name, followers, followees."""

    def relations(self, viewer: str, ids: Sequence[str]) -> list[Any]:
        """Return the commands for the relationships of the viewer with users, in both directions."""


class Answers:
    """Answers the known documents. Caches the ids of logins, which never change."""

    def __init__(self, client: Client, find: Callable[[str], Awaitable[str]]) -> None:
        self._client = client
        self._find = find
        self._ids: dict[str, str] = {}
        self.by_document: dict[str, Callable[[str, str, Mapping[str, Any]], Awaitable[Json]]] = {
            queries.HOME: self.home,
            queries.FOLLOWERS: self.followers,
            queries.NESTED: self.nested,
            queries.SMALL: self.small,
        }

    async def small(self, viewer: str, session: str, _: Mapping[str, Any]) -> Json:
        """Return the id of the viewer's user. One round trip."""
        client = self._client
        [ends] = await client.read(client.session(viewer, session), 1)
        check(ends)
        return {"viewer": {"user": {"id": encode("User:", [viewer])[0]}}}

    async def home(self, viewer: str, session: str, _: Mapping[str, Any]) -> Json:
        """Return the viewer's home timeline. Three round trips."""
        client, count = self._client, 30
        ends, ids = await client.read(
            [*client.session(viewer, session), *client.newest(f"home:{{{viewer}}}", count + 1)], 2
        )
        check(ends)
        more, ids = len(ids) > count, ids[:count]
        rows = await client.read(client.posts(ids), len(ids))
        authors = list({row[0]: None for row in rows})
        users = await client.read([*client.users(authors), *client.relations(viewer, authors)], 3 * len(authors) + 2)
        shown = dict(zip(authors, cards(viewer, authors, users), strict=True))
        cursors = cursors_of("post", ids)
        edges = [
            {
                "cursor": cursor,
                "node": {
                    "id": id_,
                    "createdAt": moment(number),
                    "author": shown[author],
                    "text": text,
                    "platform": platform,
                },
            }
            for cursor, id_, number, (author, text, platform) in zip(
                cursors, encode("Post:", ids), ids, rows, strict=True
            )
        ]
        page = {"edges": edges, "pageInfo": {"hasNextPage": more, "endCursor": cursors[-1]}}
        return {"viewer": {"homeTimeline": {"entries": page}}}

    async def followers(self, viewer: str, session: str, variables: Mapping[str, Any]) -> Json:
        """Return a user's followers. Two round trips, and one more for a new login."""
        client, count, user = self._client, 50, await self._id(variables["login"])
        ends, found = await client.read(
            [*client.session(viewer, session), *client.newest_scored(f"followers:{{{user}}}", count + 1)], 2
        )
        check(ends)
        ids, numbers = found[: 2 * count : 2], found[1 : 2 * count : 2]
        users = await client.read([*client.users(ids), *client.relations(viewer, ids)], 3 * len(ids) + 2)
        cursors = cursors_of("follow", numbers)
        edges = [
            {"cursor": cursor, "node": node} for cursor, node in zip(cursors, cards(viewer, ids, users), strict=True)
        ]
        ends_at = {"hasNextPage": len(found) > 2 * count, "endCursor": cursors[-1]}
        return {"user": {"followers": {"edges": edges, "pageInfo": ends_at}}}

    async def nested(self, viewer: str, session: str, variables: Mapping[str, Any]) -> Json:
        """Return followers and their newest posts with their authors. Three round trips."""
        client, user = self._client, await self._id(variables["login"])
        newest = client.newest(f"followers:{{{user}}}", 10)
        ends, ids = await client.read([*client.session(viewer, session), *newest], 2)
        check(ends)
        lists = [command for id_ in ids for command in client.newest(f"posts:{{{id_}}}", 6)]
        replies = await client.read([*client.names(ids), *client.relations(viewer, ids), *lists], 2 * len(ids) + 2)
        names, lists = replies[: len(ids)], replies[len(ids) + 2 :]
        states = relationships(viewer, ids, *replies[len(ids) : len(ids) + 2])
        pages = [[post for post in found if post != "f"] for found in lists]
        posts = [post for page in pages for post in page[:5]]
        rows = iter(zip(posts, encode("Post:", posts), await client.read(client.posts(posts), len(posts)), strict=True))
        nodes = []
        for id_, (login, name), state, page in zip(encode("User:", ids), names, states, pages, strict=True):
            author = {"id": id_, "login": login, "name": name, "relationship": state}
            shown = [
                {"id": post, "createdAt": moment(number), "author": author, "text": row[1]}
                for _, (number, post, row) in zip(page[:5], rows, strict=False)
            ]
            timeline = {"entries": {"nodes": shown, "pageInfo": {"hasNextPage": len(page) > 5}}}
            nodes.append({"id": id_, "login": login, "timeline": timeline})
        return {"user": {"followers": {"nodes": nodes}}}

    async def _id(self, login: str) -> str:
        known = self._ids.get(login)
        if known is None:
            known = self._ids[login] = await self._find(login)
        return known


def check(ends: str | None) -> None:
    """Raise Ended if the session has ended."""
    if ends is None or int(ends) <= time.time():
        raise Ended


def cards(viewer: str, ids: Sequence[str], replies: Sequence[Any]) -> list[Json]:
    """Return users, given their records and counts."""
    states = relationships(viewer, ids, *replies[-2:])
    columns = zip(encode("User:", ids), replies[:-2:3], replies[1:-2:3], replies[2:-2:3], states, strict=True)
    return [
        {
            "id": id_,
            "login": login,
            "name": name,
            "followersCount": followers,
            "followingCount": following,
            "relationship": state,
        }
        for id_, (login, name), followers, following, state in columns
    ]


def relationships(viewer: str, ids: Sequence[str], forth: Sequence[Any], back: Sequence[Any]) -> list[Json]:
    """Return the relationships of the viewer with users, given the scores in the viewer's two sets."""
    states = [
        (STRANGER if b is None else FOLLOWED_BY) if f is None else (FOLLOWING if b is None else MUTUAL)
        for f, b in zip(forth, back, strict=True)
    ]
    if viewer in ids:
        states[ids.index(viewer)] = YOU
    return states


def encode(label: str, numbers: Sequence[str]) -> list[str]:
    """Return global ids: base64 without padding.

    Numbers of equal length are encoded at once, padded with zeros to a multiple of three bytes.
    """
    if not numbers:
        return []
    if len(set(map(len, numbers))) > 1:
        return [encode(label, [number])[0] for number in numbers]
    width = len(label) + len(numbers[0])
    filled = -(-width // 3) * 3
    joined = label + ("\0" * (filled - width) + label).join(numbers) + "\0" * (filled - width)
    text = b2a_base64(joined.encode(), newline=False).decode()
    size, step = -(-width * 4 // 3), filled // 3 * 4
    return [text[start : start + size] for start in range(0, len(text), step)]


def cursors_of(kind: str, numbers: Sequence[str]) -> list[str]:
    """Return the cursors of one kind for these numbers."""
    form = f"{kind}-%014x"
    return [form % int(number) for number in numbers]


def moment(number: str) -> str:
    """Return the time of an event, given its number, in UTC with milliseconds."""
    day, rest = divmod(int(number) >> SEQUENCE_BITS, DAY)
    minute, ms = divmod(rest, MINUTE)
    return f"{DAYS.get(day) or new_day(day)}{MINUTES[minute]}{SECONDS[ms]}"


def new_day(day: int) -> str:
    """Return a date, given the days since EPOCH, and cache it."""
    text = DAYS[day] = (EPOCH + timedelta(days=day)).isoformat()
    return text
