"""The commands that write folded content into a store that is being rebuilt."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from graph import keys
from graph.fold.content import Content, VersionedSet
from graph.fold.loading import Batch, chunks
from graph.fold.stored import Hash, SortedSet, Value, stored
from graph.home.delivery import PULL

KeyCommand: TypeAlias = tuple[str, ...]
"""A command: its name, its key, and its other words."""

PAIRS_PER_COMMAND = 1000


def writes(batch: Batch, tombstones_after: int, notifications_kept: int) -> Iterator[KeyCommand]:
    """Yield the commands that write a batch, with tombstones whose numbers are higher than `tombstones_after`.

    Lists of notifications hold the newest `notifications_kept` groups.

    They can be repeated. Pages of one versioned set must be written in order.
    """
    if batch.is_page:
        yield from follow_replacements(keys.following, batch.content, batch.content.following)
        yield from follow_replacements(keys.followers, batch.content, batch.content.followers)
        yield from replacements(keys.reposted, batch.content.reposted)
    for key, value in stored(batch.content, tombstones_after, batch.cuts, batch.deleted, notifications_kept):
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
    for owner, elements in sets.items():
        name = key(owner)
        yield from _moves((elements.members, name), (elements.tombstones, keys.gone(name)))


def follow_replacements(
    key: Callable[[int], str], content: Content, sets: Mapping[int, VersionedSet]
) -> Iterator[KeyCommand]:
    """Yield the commands that remove what earlier pages wrote of the same follows: each is in one of three sets."""
    for owner, follows in sets.items():
        name, placed = key(owner), content.placed(owner, follows)
        yield from _moves((placed.members, name), (placed.held, keys.held(name)), (placed.tombstones, keys.gone(name)))


def _moves(*parts: tuple[Mapping[int, int], str]) -> Iterator[KeyCommand]:
    """Yield the commands that remove the elements of each part from the keys of the others."""
    for elements, own in parts:
        for some in chunks(list(map(str, elements)), PAIRS_PER_COMMAND):
            yield from (("ZREM", at, *some) for _, at in parts if at != own)


def pulls(followers: Iterable[tuple[int, int]], push_limit: float) -> Iterator[KeyCommand]:
    """Yield the commands that set the delivery mode of authors with more than `push_limit` followers to pull."""
    for author, count in followers:
        if count > push_limit:
            yield ("SET", keys.delivery(author), PULL)
