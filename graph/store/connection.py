"""One connection to a server, and the reads that it carries.

A `Read` is what one asker wants; a `Wire` gives each read its replies, in the order in which they were sent. A wire
that has seen anything odd (a reply that cannot be parsed, one that nobody asked for) is given up with all it holds,
so that no reply goes to the wrong asker.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol, Self, cast

import hiredis
from redis import exceptions
from redis._parsers.base import BaseParser

from graph.store.commands import Command
from graph.store.outages import as_graph_error

Answer = Callable[[list[Any]], Any]
pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # declared for commands of one word only
NOTHING = object()


class Owner(Protocol):
    """Who opened a wire: `wire` is the one in use, `waiting` the number of commands without an answer."""

    connection: "Connection | None"
    waiting: int

    def lost(self, connection: "Connection", error: Exception) -> None:
        """Give a wire up, and ask what it holds again."""

    def lack_scripts(self, connection: "Connection") -> None:
        """Do the same, once the scripts are loaded of which its oldest read lacks one."""

    def send(self, reads: "Sequence[Read]") -> None:
        """Send reads, those first that were held back."""


class Read:
    """Commands that one asker sends together, packed, and the future that their replies answer."""

    __slots__ = ("answer", "commands", "deadline", "future", "packed", "scripts_loaded", "size")

    def __init__(self, commands: Sequence[Command], answer: Answer, future: "asyncio.Future[Any]") -> None:
        self._take(commands, b"".join(map(pack, commands)), len(commands), answer, future)

    @classmethod
    def of_each(
        cls,
        name: str,
        keys: Sequence[str],
        words: tuple[str, ...],
        answer: Answer,
        future: "asyncio.Future[Any]",
    ) -> Self:
        """Make a read of one command for each of many keys, for a lane to a single server."""
        read = cls.__new__(cls)
        read._take((), pack_each(name, keys, words), len(keys), answer, future)
        return read

    def _take(
        self, commands: Sequence[Command], packed: bytes, size: int, answer: Answer, future: "asyncio.Future[Any]"
    ) -> None:
        self.commands = commands
        self.packed = packed
        self.size = size
        self.answer = answer
        self.future = future
        self.deadline = math.inf
        self.scripts_loaded = False

    def settle(self, replies: list[Any]) -> None:
        """Answer with replies, none of which is an error."""
        if self.future.done():
            return
        try:
            value = self.answer(replies)
        except StopIteration as error:  # which no future can hold
            self.fail(RuntimeError(f"the answer of a read raised {error!r}"))
        except Exception as error:
            self.fail(error)
        else:
            self.future.set_result(value)

    def refuse(self, replies: list[Any], error: Exception) -> None:
        """Answer with the first error among the replies."""
        self.fail(as_graph_error(error))

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless the asker has an answer already or is gone."""
        if not self.future.done():
            self.future.set_exception(error)


def pack_each(name: str, keys: Sequence[str], words: tuple[str, ...]) -> bytes:
    """Pack `name key word…` for each key: as the library does command by command, at a third of the time."""
    head, tail = _around(name, words)
    text = "".join([f"{head}{len(key)}\r\n{key}\r\n{tail}" for key in keys])
    return text.encode() if text.isascii() else b"".join([pack((name, key, *words)) for key in keys])


@lru_cache(maxsize=256)
def _around(name: str, words: tuple[str, ...]) -> tuple[str, str]:
    """Write what comes before the length of a key, and after the key."""
    tail = "".join([f"${len(word)}\r\n{word}\r\n" for word in words])
    return f"*{len(words) + 2}\r\n${len(name)}\r\n{name}\r\n$", tail


class Connection(asyncio.Protocol):
    """One connection. Its server answers in order, so the replies belong to the reads in the order of sending."""

    def __init__(self, pipeline: "Owner", writer: asyncio.StreamWriter) -> None:
        self.reads: deque[Read] = deque()
        self.paused = False
        self.answered = False
        self.heard = 0.0
        self._read_pipeline = pipeline
        self._loop = asyncio.get_running_loop()
        self._writer = writer  # kept, because it closes the connection when nobody holds it
        self._transport = writer.transport
        self._reader = hiredis.Reader(
            replyError=self._error_reply, encoding="utf-8", errors="surrogateescape", notEnoughData=NOTHING
        )
        self._replies: list[Any] = []
        self._errors = False
        self._transport.set_protocol(self)

    def send(self, reads: Sequence[Read]) -> None:
        """Send reads in one write."""
        if not self.reads:
            self.heard = self._loop.time()
        self.reads.extend(reads)
        self._transport.write(b"".join([read.packed for read in reads]))

    def drop(self) -> None:
        """End the connection at once. What it holds is the lane's to ask again."""
        self.reads.clear()
        self._replies.clear()
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, and answer the reads whose replies are complete."""
        if self._read_pipeline.connection is not self:
            return
        self.heard = self._loop.time()
        idle = not self.reads
        broken: Exception | None = None
        self._reader.feed(data)
        try:
            self._replies.extend(iter(self._reader.gets, NOTHING))
        except Exception as error:
            broken = error
        pushed = hiredis.PushNotification in map(type, self._replies)
        if pushed:
            self._replies = [reply for reply in self._replies if type(reply) is not hiredis.PushNotification]
        self._deal()
        unasked = (idle and not pushed) or (not self.reads and (self._replies or self._reader.has_data()))
        if broken is not None or unasked:
            self._read_pipeline.lost(self, broken or exceptions.InvalidResponse("a reply that nobody asked for"))

    def _deal(self) -> None:
        """Give the oldest reads their replies, as far as they have come."""
        reads, replies, start = self.reads, self._replies, 0
        while reads and len(replies) - start >= reads[0].size:
            read = reads[0]
            own = replies[start : start + read.size]
            errors = [reply for reply in own if isinstance(reply, Exception)] if self._errors else []
            if errors and self._is_not_to_blame(read, errors):
                return
            reads.popleft()
            start += read.size
            self.answered = True
            self._read_pipeline.waiting -= read.size
            if errors:
                read.refuse(own, errors[0])
            else:
                read.settle(own)
        del replies[:start]
        self._errors = self._errors and bool(replies)

    def _is_not_to_blame(self, read: Read, errors: Sequence[Exception]) -> bool:
        """Tell whether errors are about the server and not the read; then all that is unanswered is asked again."""
        for error in errors:
            if isinstance(error, exceptions.NoScriptError) and not read.scripts_loaded:
                self._read_pipeline.lack_scripts(self)
                return True
            if isinstance(error, exceptions.ConnectionError):  # it is loading its data, or turns us away
                self._read_pipeline.lost(self, error)
                return True
        return False

    def _error_reply(self, text: str) -> Exception:
        self._errors = True
        error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call] # redis-py declares nothing here
        return error

    def pause_writing(self) -> None:
        """Hold back further reads: the server takes no more at the moment."""
        self.paused = True

    def resume_writing(self) -> None:
        """Send what was held back."""
        self.paused = False
        self._read_pipeline.send([])

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the lane."""
        self._read_pipeline.lost(self, error or exceptions.ConnectionError("the store closed the connection"))
