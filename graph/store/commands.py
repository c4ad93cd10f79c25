"""Commands for the store, the Lua scripts that some of them run, and the keys that they name."""

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TypeAlias

from redis.crc import key_slot

Word: TypeAlias = str | int | float | bytes
Command: TypeAlias = tuple[Word, ...]

MULTI_KEY_COMMANDS = frozenset({"DEL", "UNLINK", "EXISTS", "MGET", "TOUCH"})


class SlotError(AssertionError):
    """A command or script names keys of different cluster slots, which a cluster would refuse."""


class Script:
    """A Lua script of `graph/scripts`, which runs atomically. Its header documents KEYS and ARGV."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.source = resources.files("graph.scripts").joinpath(f"{name}.lua").read_text("utf-8")
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def call(self, keys: Sequence[str], *arguments: Word) -> Command:
        """Return the command that runs the script with these keys, which must share a slot."""
        return ("EVALSHA", self.sha, len(keys), *keys, *arguments)


@cache
def script(name: str) -> Script:
    """Return a script by its file name without `.lua`. The file is read once per process."""
    return Script(name)


def keys_of(command: Command) -> tuple[str, ...]:
    """Return the keys that a command names. Knows the commands that the graph uses."""
    if command[0] == "EVALSHA":
        return tuple(str(key) for key in command[3 : 3 + int(command[2])])
    if command[0] in MULTI_KEY_COMMANDS:
        return tuple(str(key) for key in command[1:])
    if command[0] in ("XGROUP", "XINFO"):
        return (str(command[2]),)
    if command[0] in ("XREADGROUP", "XREAD"):
        return (str(command[command.index("STREAMS") + 1]),)
    return (str(command[1]),) if len(command) > 1 else ()


def check_slot(command: Command) -> None:
    """Raise SlotError if the command's keys are in more than one cluster slot."""
    keys = keys_of(command)
    if len({key_slot(key.encode()) for key in keys}) > 1:
        raise SlotError(f"{command[0]!s} names keys of different slots: {', '.join(keys)}")
