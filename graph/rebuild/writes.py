"""The commands that write folded content into a store that is being rebuilt."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from graph import keys
from graph.fold.content import VersionedSet
from graph.fold.loading import Batch, chunks
from graph.fold.stored import Hash, SortedSet, Value, stored
from graph.home.delivery import PULL

KeyCommand: TypeAlias = tuple[str, ...]
"""A command: its name, its key, and its other words."""

PAIRS_PER_COMMAND = 1000


def writes(batch: Batch, tombstones_after: int) -> Iterator[KeyCommand]:
    """Yield the commands that write a batch, with tombstones whose numbers are higher than `tombstones_after`.

    They can be repeated. Pages of one versioned set must be written in order.
    """
    if batch.is_page:
        yield from replacements(keys.following, batch.content.following)
        yield from replacements(keys.followers, batch.content.followers)
        yield from replacements(keys.reposted, batch.content.reposted)
    for key, value in stored(batch.content, tombstones_after, batch.cuts, batch.deleted):
        yield from write(key, value)


def write(key: str, value: Value) -> Iterator[KeyCommand]:
    """Yield the commands that write a value. A login becomes permanent, because a client may have claimed it."""
    if isinstance(value, SortedSet):
        for pairs in chunks(list(value.items()), PAIRS_PER_COMMAND):
            yield ("ZADD", key, *[word for member, score in pairs for word in (str(score), member)])
    elif isinstance(value, Hash):
        yield ("HSET", key, *[word for pair in value.items() for word in pair])
        if key.startswith("login:"):
            yield ("PERSIST", key)
    else:
        yield ("SET", key, value)


def replacements(key: Callable[[int], str], sets: Mapping[int, VersionedSet]) -> Iterator[KeyCommand]:
    """Yield the commands that remove what earlier pages wrote: tombstones of members, and members with tombstones."""
    for owner, held in sets.items():
        name = key(owner)
        for members, at in ((held.tombstones, name), (held.members, keys.gone(name))):
            for some in chunks(list(map(str, members)), PAIRS_PER_COMMAND):
                yield ("ZREM", at, *some)


def pulls(followers: Iterable[tuple[int, int]], push_limit: float) -> Iterator[KeyCommand]:
    """Yield the commands that set the delivery mode of authors with more than `push_limit` followers to pull."""
    for author, count in followers:
        if count > push_limit:
            yield ("SET", keys.delivery(author), PULL)
