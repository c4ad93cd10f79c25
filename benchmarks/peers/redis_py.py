"""The store client on redis-py: pipelines, with hiredis as the parser."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from redis.asyncio import Redis

Command: TypeAlias = tuple[str | int, ...]


class RedisPyClient:
    """redis-py's client and its pool. `round_trips` counts the pipelines."""

    def __init__(self, url: str) -> None:
        self.round_trips = 0
        self._redis = Redis.from_url(url, decode_responses=True, protocol=2)
        self._redis.response_callbacks.clear()

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def find(self, login: str) -> str:
        """Return a user's id. One round trip."""
        [id_] = await self.read([("HGET", f"login:{{{login}}}", "user")], 1)
        return str(id_)

    async def read(self, commands: Sequence[Command], count: int) -> list[Any]:
        """Send commands in one round trip and return their replies."""
        self.round_trips += 1
        async with self._redis.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return await pipeline.execute()

    def session(self, viewer: str, session: str) -> list[Command]:
        """Return the command that reads when a session expires."""
        return [("HGET", f"session:{{{viewer}}}", session)]

    def newest(self, key: str, count: int) -> list[Command]:
        """Return the command for the newest members of a sorted set."""
        return [("ZRANGE", key, 0, count - 1, "REV")]

    def newest_scored(self, key: str, count: int) -> list[Command]:
        """Return the command for the newest members of a sorted set with their scores."""
        return [("ZRANGE", key, 0, count - 1, "REV", "WITHSCORES")]

    def posts(self, ids: Sequence[str]) -> list[Command]:
        """Return a command for each post, which reads its author, text and platform."""
        return [("HMGET", f"post:{{{id_}}}", "author", "text", "platform") for id_ in ids]

    def names(self, ids: Sequence[str]) -> list[Command]:
        """Return a command for each user, which reads the login and the name."""
        return [("HMGET", f"user:{{{id_}}}", "login", "name") for id_ in ids]

    def users(self, ids: Sequence[str]) -> list[Command]:
        """Return the commands for users, three replies each: login and name, followers, followees."""
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
        """Return the commands for the relationships of the viewer with users, in both directions."""
        return [("ZMSCORE", f"following:{{{viewer}}}", *ids), ("ZMSCORE", f"followers:{{{viewer}}}", *ids)]
