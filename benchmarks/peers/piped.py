"""The store by redis-py as it is: pipelines, hiredis for the replies."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis

Command: TypeAlias = tuple[str | int, ...]


class Pipes:
    """redis-py's client and its pool. `round_trips` counts the pipelines."""

    def __init__(self, url: str) -> None:
        self.round_trips = 0
        self._redis = Redis.from_url(url, decode_responses=True, protocol=2)
        self._redis.response_callbacks.clear()

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def find(self, login: str) -> str:
        """Find a person's id. One round trip."""
        [id_] = await self.read([("HGET", f"login:{{{login}}}", "user")], 1)
        return str(id_)

    async def read(self, commands: Sequence[Command], count: int) -> list[Any]:
        """Send commands in one round trip; give their replies."""
        self.round_trips += 1
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return await pipeline.execute()

    def session(self, viewer: str, session: str) -> list[Command]:
        """Ask when a session ends."""
        return [("HGET", f"session:{{{viewer}}}", session)]

    def newest(self, key: str, count: int) -> list[Command]:
        """Ask for the newest members of a sorted set."""
        return [("ZRANGE", key, 0, count - 1, "REV")]

    def newest_scored(self, key: str, count: int) -> list[Command]:
        """Ask for the newest members of a sorted set, each followed by its score."""
        return [("ZRANGE", key, 0, count - 1, "REV", "WITHSCORES")]

    def posts(self, ids: Sequence[str]) -> list[Command]:
        """Ask for posts: author, text, platform."""
        return [("HMGET", f"post:{{{id_}}}", "author", "text", "platform") for id_ in ids]

    def names(self, ids: Sequence[str]) -> list[Command]:
        """Ask for people: login, name."""
        return [("HMGET", f"user:{{{id_}}}", "login", "name") for id_ in ids]

    def people(self, ids: Sequence[str]) -> list[Command]:
        """Ask for people in three replies each: login and name; the number of followers; of those they follow."""
        return [
            command
            for id_ in ids
            for command in (
                ("HMGET", f"user:{{{id_}}}", "login", "name"),
                ("ZCARD", f"followers:{{{id_}}}"),
                ("ZCARD", f"following:{{{id_}}}"),
            )
        ]

    def relations(self, viewer: str, ids: Sequence[str]) -> list[Command]:
        """Ask whom of these people the viewer follows, and who of them follows the viewer."""
        return [("ZMSCORE", f"following:{{{viewer}}}", *ids), ("ZMSCORE", f"followers:{{{viewer}}}", *ids)]
