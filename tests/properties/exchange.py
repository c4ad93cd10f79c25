"""Exchanges of commands over blocking sockets, with one server or with several that represent a cluster's primaries.

Only for programs that do nothing else while they wait for replies.
"""

import socket
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import hiredis
from redis.crc import key_slot
from redis.exceptions import NoScriptError, ResponseError

from graph.store.commands import Command, keys_of

CACHING: Command = ("CLIENT", "CACHING", "YES")
KEYLESS = frozenset({"CLIENT", "FLUSHALL", "HELLO", "INFO", "PING", "SCRIPT"})

Pushed = Callable[[int, Sequence[Any]], None]


def ignore(place: int, messages: Sequence[Any]) -> None:
    """Do nothing."""


class Servers:
    """The servers of a machine, whose URLs are separated by commas. Their places are 0, 1, 2, ….

    Unlike the slots of a cluster, the places of keys depend on the order of the events and not on their numbers, which
    depend on the time. Checks of a property are therefore reproducible.
    """

    def __init__(self, url: str) -> None:
        self.urls = url.split(",")
        self._places: dict[str, int] = {}

    def empty(self) -> None:
        """Forget the events."""
        self._places.clear()

    def note(self, numbers: Sequence[int]) -> None:
        """Assign the keys of new users and posts to the servers in turn."""
        for number in numbers:
            self._places[str(number)] = len(self._places) % len(self.urls)

    def place_of(self, key: str) -> int:
        """Return the place of the server that owns a key. Keys with the same hash tag have the same owner."""
        tag = tag_of(key)
        place = self._places.get(tag)
        return key_slot(tag.encode()) % len(self.urls) if place is None else place


def tag_of(key: str) -> str:
    """Return the hash tag of a key."""
    return key.partition("{")[2].partition("}")[0]


@cache
def servers_of(url: str) -> Servers:
    """Return the servers of a URL. All callers share them."""
    return Servers(url)


class Line:
    """A socket to one server. `pushed` is called with the messages about tracked keys that came with replies."""

    def __init__(self, url: str, pushed: Callable[[Sequence[Any]], None]) -> None:
        self._pushed = pushed
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(url.removeprefix("unix://"))
        self._parser = hiredis.Reader(encoding="utf-8")
        self([("HELLO", 3)])

    def __call__(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, which may be errors."""
        packed: list[Any] = list(commands)
        self._socket.sendall(b"".join(map(hiredis.pack_command, packed)))
        replies: list[Any] = []
        while len(replies) < len(commands):
            reply = self._parser.gets()
            if reply is False:
                self._parser.feed(self._socket.recv(1 << 16))
            elif type(reply) is hiredis.PushNotification:
                self._pushed([reply])
            else:
                replies.append(as_error(reply) if isinstance(reply, hiredis.ReplyError) else reply)
        return replies

    def close(self) -> None:
        self._socket.close()


class Exchange:
    """Exchanges commands with servers. Commands without keys go to all servers, and return the reply of the first one.

    `pushed` is called with the place of a server and its messages about tracked keys.
    """

    def __init__(self, url: str, pushed: Pushed = ignore) -> None:
        self.servers = servers_of(url)
        self.lines = [Line(each, partial(pushed, place)) for place, each in enumerate(self.servers.urls)]

    def __call__(self, commands: Sequence[Command]) -> list[Any]:
        """Return the replies to commands, which may be errors."""
        if len(self.lines) == 1:
            return self.lines[0](commands)
        if commands and commands[0][0] == "SCAN":
            return [self._scan(*command) for command in commands]
        replies: list[Any] = [None] * len(commands)
        for place, indexes in self.by_place(commands).items():
            found = self.lines[place]([commands[index] for index in indexes])
            for index, reply in zip(indexes, found, strict=True):
                if replies[index] is None:
                    replies[index] = reply
        return replies

    def by_place(self, commands: Sequence[Command]) -> dict[int, list[int]]:
        """Return the indexes of the commands for each server. `CACHING` goes to the same server as the next command."""
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for index, command in enumerate(commands):
            named = commands[index + 1] if command == CACHING else command
            everywhere = named[0] in KEYLESS
            for place in range(len(self.lines)) if everywhere else [self.servers.place_of(keys_of(named)[0])]:
                groups[place].append(index)
        return groups

    def _scan(self, name: Any, cursor: Any, *words: Any) -> list[Any]:
        """Return a reply to `SCAN`. The cursor also encodes the server, so that servers are scanned in turn."""
        left, place = divmod(int(cursor), len(self.lines))
        [[following, found]] = self.lines[place]([(name, left, *words)])
        if int(following):
            return [str(int(following) * len(self.lines) + place), found]
        return [str(place + 1 if place + 1 < len(self.lines) else 0), found]

    def changes(self) -> int:
        """Return how often the content of the servers has changed."""
        found = [line([("INFO", "persistence")])[0] for line in self.lines]
        return sum(int(text.partition("rdb_changes_since_last_save:")[2].partition("\r")[0]) for text in found)

    def close(self) -> None:
        for line in self.lines:
            line.close()


def as_error(reply: hiredis.ReplyError) -> Exception:
    """Return the client library's exception for an error reply."""
    return (NoScriptError if str(reply).startswith("NOSCRIPT") else ResponseError)(str(reply))
