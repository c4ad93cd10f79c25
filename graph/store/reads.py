"""Reads: commands that are sent together, packed for the protocol, with the future that their replies resolve."""

import asyncio
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Self, TypeAlias, cast

import hiredis

from graph.store.commands import Command
from graph.store.near_cache import MISSING, Moment, NearCache, TrackingPeriod
from graph.store.outages import ELSEWHERE, SlotMoving, is_asking, is_retryable, translate_error

Convert: TypeAlias = Callable[[list[Any]], Any]
"""Converts the replies of a read into its result."""

pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # typed for commands of one word only
CACHING = "*3\r\n$6\r\nCLIENT\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n"
"""The packed command that lets the server track the keys of the next command."""


class Read:
    """Commands that one caller sends together, packed, and the future of their result.

    `deadline` is the event-loop time at which the read fails. `scripts_loaded` is True once the scripts have been
    loaded because of this read: a second NOSCRIPT error is then a failure of this read. For the near cache, `number` is
    the number of the write that last sent the read, and `source` the tracking period of the connection used.
    """

    __slots__ = ("commands", "convert", "deadline", "future", "number", "packed", "scripts_loaded", "size", "source")

    def __init__(self, commands: Sequence[Command], convert: Convert, future: "asyncio.Future[Any]") -> None:
        self._set(commands, b"".join(map(pack, commands)), len(commands), convert, future)

    @classmethod
    def for_each_key(
        cls,
        name: str,
        keys: Sequence[str],
        words: tuple[str, ...],
        convert: Convert,
        future: "asyncio.Future[Any]",
    ) -> Self:
        """Build a read that sends `name key word…` for each key, to a single server only, not to a cluster."""
        read = cls.__new__(cls)
        read._set((), pack_each(name, keys, words), len(keys), convert, future)
        return read

    def _set(
        self, commands: Sequence[Command], packed: bytes, size: int, convert: Convert, future: "asyncio.Future[Any]"
    ) -> None:
        self.commands = commands
        self.packed = packed
        self.size = size
        self.convert = convert
        self.future = future
        self.deadline = math.inf
        self.scripts_loaded = False
        self.number: Moment = 0
        self.source: TrackingPeriod | None = None

    def must_be_repeated(self, reply: Any) -> bool:
        """Return True if the command must be sent to a cluster again after this reply."""
        return is_retryable(reply)

    def resolve(self, replies: list[Any]) -> None:
        """Set the result from replies, none of which is an error."""
        if self.future.done():
            return
        try:
            value = self.convert(replies)
        except StopIteration as error:  # which a future refuses
            self.fail(RuntimeError(f"the conversion of a read's replies raised {error!r}"))
        except Exception as error:
            self.fail(error)
        else:
            self.future.set_result(value)

    def reject(self, replies: list[Any], error: Exception) -> None:
        """Fail with `error`, the first error among the replies."""
        self.fail(translate_error(error))

    def fail(self, error: Exception) -> None:
        """Set an exception, unless the future is done or cancelled.

        The exception is marked as retrieved, because the request may have ended. A caller that awaits the future still
        gets the exception.
        """
        if not self.future.done():
            self.future.set_exception(error)
            self.future.exception()


class ReadAcrossSlots(Read):
    """Scripts that each name only one key, but read keys in several slots of the same node.

    They are not sent to a node that is importing one of the slots. That node has only some of the slot's keys, and the
    script would treat the others as absent, because the command does not name them.
    """

    __slots__ = ()

    def must_be_repeated(self, reply: Any) -> bool:
        """Return True for a reply after which the command can be sent again, unless one of the slots is moving."""
        return is_retryable(reply) and not is_moving(reply)

    def reject(self, replies: list[Any], error: Exception) -> None:
        """Fail with `error`, or with SlotMoving if one of the slots has moved or is moving."""
        super().reject(replies, SlotMoving(error) if is_moving(error) else error)


def is_moving(error: Any) -> bool:
    """Return True if the error means that a slot needed by the command has moved or is moving."""
    return is_asking(error) or ELSEWHERE in str(error)


class NearRead(Read):
    """A read that sends `name key word…` for each key, and keeps the values in the cache `near`.

    `convert` returns one value per key. The result is `known` with these values in place of `MISSING`, in order.
    """

    __slots__ = ("_convert_rows", "_keys", "_known", "near")

    def __init__(
        self,
        near: NearCache,
        name: str,
        keys: Sequence[str],
        words: tuple[str, ...],
        convert: Convert,
        known: list[Any],
        future: "asyncio.Future[Any]",
    ) -> None:
        self._prepare(name, keys, words, future)
        self.near = near
        self._keys = keys
        self._known = known
        self._convert_rows = convert
        near.ask(keys, self)
        future.add_done_callback(self._end)

    @abstractmethod
    def _prepare(self, name: str, keys: Sequence[str], words: tuple[str, ...], future: "asyncio.Future[Any]") -> None:
        """Set the commands."""

    def _keep(self, rows: list[Any], sources: Sequence[TrackingPeriod | None]) -> list[Any]:
        """Return the result, and cache the value of each row that has a source."""
        values = self._convert_rows(rows)
        self.near.keep(self._keys, values, sources, self)
        return filled(self._known, values)

    def _end(self, future: "asyncio.Future[Any]") -> None:
        self.near.release(self._keys, self)


class TrackedRead(NearRead):
    """A near read of a single server, with `CACHING` before each command.

    If the connection is lost, and the next one does not track keys, nothing is kept.
    """

    __slots__ = ()

    def _prepare(self, name: str, keys: Sequence[str], words: tuple[str, ...], future: "asyncio.Future[Any]") -> None:
        self._set((), pack_each(name, keys, words, CACHING), 2 * len(keys), self._values, future)

    def _values(self, replies: list[Any]) -> list[Any]:
        return self._keep(replies[1::2], [self.source] * len(self._keys))

    def reject(self, replies: list[Any], error: Exception) -> None:
        """Fail with the first error among the rows. If only `CACHING` was refused, resolve, but keep nothing."""
        errors = [row for row in replies[1::2] if isinstance(row, Exception)]
        if errors:
            super().reject(replies, errors[0])
        else:
            self.near.release(self._keys, self)
            self.resolve(replies)


class ScatteredRead(NearRead):
    """A near read of a cluster. `sources` has the tracking period of each value, or None if it must not be cached.

    Absent keys are not kept: see `NearCache`.
    """

    __slots__ = ("sources",)

    def _prepare(self, name: str, keys: Sequence[str], words: tuple[str, ...], future: "asyncio.Future[Any]") -> None:
        self._set([(name, key, *words) for key in keys], b"", len(keys), self._values, future)
        self.sources: list[TrackingPeriod | None] = [None] * len(keys)

    def _values(self, rows: list[Any]) -> list[Any]:
        sources = zip(rows, self.sources, strict=True)
        return self._keep(rows, [source if is_present(row) else None for row, source in sources])


def is_present(row: Any) -> bool:
    """Return True if the reply to a read proves that its key exists."""
    return any(each is not None for each in row) if type(row) is list else bool(row)


def filled(known: list[Any], values: Iterable[Any]) -> list[Any]:
    """Return `known` with these values in place of `MISSING`, in order."""
    rest = iter(values)
    return [next(rest) if value is MISSING else value for value in known]


def as_received(command: Command) -> Command:
    """Return a command that sends invalid UTF-8, such as that of a damaged entry, exactly as it was received.

    `graph.store.streams.new_parser` decodes such bytes as lone surrogates, which `pack` does not encode.
    """
    return tuple(word.encode(errors="surrogateescape") if isinstance(word, str) else word for word in command)


def pack_each(name: str, keys: Sequence[str], words: tuple[str, ...], before: str = "") -> bytes:
    """Pack `name key word…` for each key, each preceded by the packed command `before`.

    Takes a third of the time of `hiredis.pack_command` for each command, and even less if all keys have the same
    length.
    """
    head, tail = _head_and_tail(name, words)
    if len(lengths := set(map(len, keys))) == 1:
        head, tail = f"{before}{head}{lengths.pop()}\r\n", f"\r\n{tail}"
        text = head + (tail + head).join(keys) + tail
    else:
        text = "".join([f"{before}{head}{len(key)}\r\n{key}\r\n{tail}" for key in keys])
    return text.encode() if text.isascii() else b"".join([before.encode() + pack((name, key, *words)) for key in keys])


@lru_cache(maxsize=256)
def _head_and_tail(name: str, words: tuple[str, ...]) -> tuple[str, str]:
    """Return the packed text before the length of the key, and the text after the key."""
    tail = "".join([f"${len(word)}\r\n{word}\r\n" for word in words])
    return f"*{len(words) + 2}\r\n${len(name)}\r\n{name}\r\n$", tail
