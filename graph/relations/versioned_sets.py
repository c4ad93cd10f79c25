"""Commands that add elements to versioned sets and remove them (see `graph.keys` for the data structure)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import orjson

from graph import keys
from graph.chunks import chunks
from graph.fold.content import Member, VersionedSet
from graph.relations.relation import KeyCommand
from graph.store.commands import Command, script
from graph.store.store import Store

OWNERS_PER_SCRIPT = 1000
PAIRS_PER_SCRIPT = 500
MEMBERS_PER_COMMAND = 1000


def additions(
    store: Store, key: Callable[[int], str], changes: Iterable[tuple[int, int, int | str]], *, unlink_home: bool = False
) -> list[Command]:
    """Return the commands that add members, given as (owner, number, member), to the owners' sets.

    With `unlink_home`, the home cache of each owner whose set changes is deleted too.
    """
    commands = []
    for group in store.together(by_owner(changes), lambda change: key(change[0]), OWNERS_PER_SCRIPT):
        names = [name for owner, _ in group for name in set_keys(key, owner, with_home=unlink_home)]
        pairs = orjson.dumps([pairs for _, pairs in group])
        commands.append(script("add").call(names, 3 if unlink_home else 2, pairs))
    return commands


def removals(
    key: Callable[[int], str],
    changes: Iterable[tuple[int, int | str, int]],
    trim_up_to: int,
    *,
    unlink_home: bool = False,
) -> list[Command]:
    """Return the commands that remove members, given as (owner, member, number), from the owners' sets.

    Tombstones with numbers up to `trim_up_to` are trimmed. With `unlink_home`, the home cache of each owner whose set
    changes is deleted too.
    """
    return [
        removal([key(owner)], keys.home(owner) if unlink_home else None, trim_up_to, pairs)
        for owner, pairs in by_owner(changes)
    ]


def removal(names: Sequence[str], home: str | None, trim_up_to: int, pairs: Iterable[str]) -> Command:
    """Return the command that removes members, given as (member, number) pairs. Any removal also deletes `home`.

    The first name is the key of the set; the others are the keys of further sets that may hold its members.
    """
    all_names = [keys.gone(names[0]), *names, *([home] if home else [])]
    return script("remove").call(all_names, trim_up_to, int(home is not None), *pairs)


def set_keys(key: Callable[[int], str], owner: int, *, with_home: bool = False) -> list[str]:
    """Return the keys of an owner's versioned set and its tombstones, and also of the home cache if `with_home`."""
    name = key(owner)
    return [name, keys.gone(name), keys.home(owner)] if with_home else [name, keys.gone(name)]


def by_owner(changes: Iterable[tuple[int, int | str, int | str]]) -> Iterable[tuple[int, Sequence[str]]]:
    """Yield each owner with a flat list of the owner's pairs as strings. Lists are split after 500 pairs."""
    words: defaultdict[int, list[str]] = defaultdict(list)
    for owner, first, second in changes:
        words[owner] += (str(first), str(second))
    for owner, pairs in words.items():
        for some in chunks(pairs, 2 * PAIRS_PER_SCRIPT):
            yield owner, some


def replacements(key: Callable[[int], str], sets: Mapping[int, VersionedSet[Member]]) -> Iterator[KeyCommand]:
    """Yield the commands that remove stored tombstones of the sets' members, and stored members with tombstones."""
    for owner, held in sets.items():
        name = key(owner)
        yield from moves((held.members, name), (held.tombstones, keys.gone(name)))


def moves(*parts: tuple[Iterable[object], str]) -> Iterator[KeyCommand]:
    """Yield the commands that remove the members of each part from the keys of the others."""
    for members, own in parts:
        for some in chunks(list(map(str, members)), MEMBERS_PER_COMMAND):
            yield from (("ZREM", at, *some) for _, at in parts if at != own)
