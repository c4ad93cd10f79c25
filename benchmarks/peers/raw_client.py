"""The thinnest store client: commands as text, one asyncio protocol, and hiredis for the replies.

It is a lower bound for a real client: it has no timeouts, no retries and no limits.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Self, cast
from urllib.parse import urlsplit

import hiredis


class RawClient(asyncio.Protocol):
    """A connection to the store. `round_trips` counts the writes."""

    def __init__(self) -> None:
        self.round_trips = 0
        self._reader = hiredis.Reader(encoding="utf-8")
        self._waiting: deque[tuple[asyncio.Future[list[Any]], int, list[Any]]] = deque()
        self._outgoing: list[str] = []
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(cls, url: str) -> Self:
        """Connect to the unix socket of a URL."""
        _, client = await asyncio.get_running_loop().create_unix_connection(cls, urlsplit(url).path)
        return client

    async def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Resolve the pending futures with the replies, in order."""
        self._reader.feed(data)
        gets, waiting = self._reader.gets, self._waiting
        while waiting:
            future, count, replies = waiting[0]
            replies += [gets() for _ in range(count - len(replies))]
            if replies[-1] is False:  # no complete reply is left
                while replies and replies[-1] is False:
                    replies.pop()
                return
            waiting.popleft()
            if not future.done():
                future.set_result(replies)

    def read(self, commands: Sequence[str], count: int) -> asyncio.Future[list[Any]]:
        """Send commands together with all others of this event-loop iteration. The future resolves to their replies."""
        future: asyncio.Future[list[Any]] = self._loop.create_future()
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing += commands
        self._waiting.append((future, count, []))
        return future

    def _flush(self) -> None:
        self.round_trips += 1
        self._transport.write("".join(self._outgoing).encode())
        self._outgoing.clear()

    def session(self, viewer: str, session: str) -> list[str]:
        """Return the command that reads when a session expires."""
        return [f"*3\r\n$4\r\nHGET\r\n${len(viewer) + 10}\r\nsession:{{{viewer}}}\r\n${len(session)}\r\n{session}\r\n"]

    def newest(self, key: str, count: int) -> list[str]:
        """Return the command for the newest members of a sorted set."""
        last = str(count - 1)
        return [f"*5\r\n$6\r\nZRANGE\r\n${len(key)}\r\n{key}\r\n$1\r\n0\r\n${len(last)}\r\n{last}\r\n$3\r\nREV\r\n"]

    def newest_scored(self, key: str, count: int) -> list[str]:
        """Return the command for the newest members of a sorted set with their scores."""
        last = str(count - 1)
        return [
            f"*6\r\n$6\r\nZRANGE\r\n${len(key)}\r\n{key}\r\n$1\r\n0\r\n${len(last)}\r\n{last}\r\n$3\r\nREV\r\n"
            "$10\r\nWITHSCORES\r\n"
        ]

    def posts(self, ids: Sequence[str]) -> list[str]:
        """Return a command for each post, which reads its author, text and platform."""
        return [
            f"*5\r\n$5\r\nHMGET\r\n${len(id_) + 7}\r\npost:{{{id_}}}\r\n"
            "$6\r\nauthor\r\n$4\r\ntext\r\n$8\r\nplatform\r\n"
            for id_ in ids
        ]

    def names(self, ids: Sequence[str]) -> list[str]:
        """Return a command for each user, which reads the login and the name."""
        return [
            f"*4\r\n$5\r\nHMGET\r\n${len(id_) + 7}\r\nuser:{{{id_}}}\r\n$5\r\nlogin\r\n$4\r\nname\r\n" for id_ in ids
        ]

    def users(self, ids: Sequence[str]) -> list[str]:
        """Return the commands for users, three replies each: login and name, followers, followees."""
        return [
            f"*4\r\n$5\r\nHMGET\r\n${(n := len(id_)) + 7}\r\nuser:{{{id_}}}\r\n$5\r\nlogin\r\n$4\r\nname\r\n"
            f"*2\r\n$5\r\nZCARD\r\n${n + 12}\r\nfollowers:{{{id_}}}\r\n"
            f"*2\r\n$5\r\nZCARD\r\n${n + 12}\r\nfollowing:{{{id_}}}\r\n"
            for id_ in ids
        ]

    def relations(self, viewer: str, ids: Sequence[str]) -> list[str]:
        """Return the commands for the relationships of the viewer with users, in both directions."""
        members = "".join([f"${len(id_)}\r\n{id_}\r\n" for id_ in ids])
        head, size = f"*{len(ids) + 2}\r\n$7\r\nZMSCORE\r\n", len(viewer) + 12
        return [
            f"{head}${size}\r\nfollowing:{{{viewer}}}\r\n{members}{head}${size}\r\nfollowers:{{{viewer}}}\r\n{members}"
        ]

    async def find(self, login: str) -> str:
        """Return a user's id. One round trip."""
        size = len(login) + 8
        [id_] = await self.read([f"*3\r\n$4\r\nHGET\r\n${size}\r\nlogin:{{{login}}}\r\n$4\r\nuser\r\n"], 1)
        return str(id_)
