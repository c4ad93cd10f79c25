"""Commands for the store, the Lua scripts that some of them run, and the keys that they name."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TypeAlias, TypeVar

from redis.crc import key_slot

from graph.chunks import chunks

K = TypeVar("K")
Word: TypeAlias = str | int | float | bytes
Command: TypeAlias = tuple[Word, ...]

PRELUDE = "prelude"
"""The file in `graph/scripts` with the functions that scripts share. It is not a script itself."""
ASKING: Command = ("ASKING",)
MULTI_KEY_COMMANDS = frozenset({"DEL", "UNLINK", "EXISTS", "MGET", "TOUCH"})
BLOCKING_COMMANDS = frozenset({"XREAD", "XREADGROUP"})
READING_COMMANDS = frozenset(
    {
        *(
            "ASKING",
            "CLUSTER",
            "DBSIZE",
            "ECHO",
            "EXISTS",
            "GET",
            "HEXISTS",
            "HGET",
            "HGETALL",
            "HKEYS",
            "HLEN",
            "HMGET",
        ),
        *("INFO", "MGET", "PING", "ROLE", "SCAN", "SCRIPT", "TIME", "TTL", "TYPE", "WAIT", "XINFO", "XLEN", "XPENDING"),
        *("XRANGE", "XREAD", "XREVRANGE", "ZCARD", "ZCOUNT", "ZMSCORE", "ZRANGE", "ZSCAN", "ZSCORE"),
    }
)


class SlotError(AssertionError):
    """A command or script names keys of different cluster slots, which a cluster would refuse."""


class Script:
    """A Lua script of `graph/scripts`, which runs atomically. Its header documents KEYS and ARGV.

    A script that calls functions of `prelude.lua` gets that file inserted below its first line, which declares the
    engine. Other scripts do not get it, because each run would spend half a microsecond on defining the functions.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        engine, _, body = _read(name).partition("\n")
        prelude = _read(PRELUDE)
        functions = re.findall(r"local function (\w+)", prelude)
        needs = any(f"{function}(" in body for function in functions)
        self.source = f"{engine}\n{prelude if needs else ''}{body}"
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], *arguments: Word) -> Command:
        """Return the command that runs the script with these keys, which must share a slot."""
        return ("EVALSHA", self.sha, len(keys), *keys, *arguments)

    def call_with_source(self, keys: Sequence[str], *arguments: Word) -> Command:
        """Return the command that sends the script and runs it, even if the store is full."""
        source = self.source.replace("#!lua\n", "#!lua flags=allow-oom\n", 1)
        return ("EVAL", source, len(keys), *keys, *arguments)


@cache
def _read(name: str) -> str:
    return resources.files("graph.scripts").joinpath(f"{name}.lua").read_text("utf-8")


@cache
def script(name: str) -> Script:
    """Return a script by its file name without `.lua`. The file is read once per process."""
    return Script(name)


@cache
def all_scripts() -> tuple[Script, ...]:
    """Return all scripts. Their files are read once per process."""
    files = [entry.name for entry in resources.files("graph.scripts").iterdir() if entry.name.endswith(".lua")]
    return tuple(script(name) for name in sorted(file.removesuffix(".lua") for file in files) if name != PRELUDE)


def load_scripts() -> list[Command]:
    """Return the commands that load all scripts."""
    return [("SCRIPT", "LOAD", each.source) for each in all_scripts()]


@cache
def _reading_scripts() -> frozenset[Word]:
    return frozenset(each.sha for each in all_scripts() if "no-writes" in each.source.partition("\n")[0])


def writes(command: Command) -> bool:
    """Return True if a command may write data that must survive a failover.

    XREADGROUP is not counted: it records only which consumer holds an entry, and the worker recovers from the loss of
    that record.
    """
    name = str(command[0])
    if name == "EVALSHA":
        return command[1] not in _reading_scripts()
    return name not in READING_COMMANDS and name != "XREADGROUP"


def seconds_blocked(command: Command) -> float:
    """Return how many seconds a server may wait for stream entries before it replies to a command."""
    if command[0] in BLOCKING_COMMANDS and "BLOCK" in command:
        return float(command[command.index("BLOCK") + 1]) / 1000
    return 0.0


def keys_of(command: Command) -> tuple[str, ...]:
    """Return the keys that a command names. Supports the commands that the graph uses."""
    if command[0] in ("EVALSHA", "EVAL"):
        return tuple(str(key) for key in command[3 : 3 + int(command[2])])
    if command[0] in MULTI_KEY_COMMANDS:
        return tuple(str(key) for key in command[1:])
    if command[0] in ("XGROUP", "XINFO"):
        return (str(command[2]),)
    if command[0] in ("XREADGROUP", "XREAD"):
        return (str(command[command.index("STREAMS") + 1]),)
    return (str(command[1]),) if len(command) > 1 else ()


def check_slots(commands: Iterable[Command]) -> None:
    """Raise SlotError if the keys of one of the commands are in more than one cluster slot."""
    for command in commands:
        keys = keys_of(command)
        if len({key_slot(key.encode()) for key in keys}) > 1:
            raise SlotError(f"{command[0]!s} names keys of different slots: {', '.join(keys)}")


def in_groups(items: Iterable[K], group_of: Callable[[K], object], limit: int) -> Iterator[Sequence[K]]:
    """Yield lists of at most `limit` items, all of the same group, so that one command can name the keys of a list."""
    groups: defaultdict[object, list[K]] = defaultdict(list)
    for item in items:
        groups[group_of(item)].append(item)
    for group in groups.values():
        yield from chunks(group, limit)
