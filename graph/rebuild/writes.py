"""The commands that write folded content into a store that is being rebuilt."""

from collections.abc import Iterable, Iterator

from graph import keys
from graph.chunks import chunks
from graph.expected.stored import stored
from graph.fold.reading import FoldedBatch
from graph.fold.values import Hash, SortedSet, Value
from graph.home.delivery import PULL
from graph.relations.register import RELATIONS
from graph.relations.relation import KeyCommand
from graph.relations.versioned_sets import replacements

PAIRS_PER_COMMAND = 1000


def writes(batch: FoldedBatch, tombstones_after: int, notifications_kept: int) -> Iterator[KeyCommand]:
    """Yield the commands that write a batch, with tombstones whose numbers are higher than `tombstones_after`.

    A list of notifications is written with its newest `notifications_kept` groups. The commands can be repeated. Pages
    of one versioned set must be written in order.
    """
    if batch.is_page:
        for relation in RELATIONS:
            yield from relation.replacements(batch.content)
        yield from replacements(keys.reposted, batch.content.reposted)
    for key, value in stored(batch.content, tombstones_after, batch.cuts, batch.deleted, notifications_kept):
        yield from write(key, value)


def write(key: str, value: Value) -> Iterator[KeyCommand]:
    """Yield the commands that write a value. A login becomes permanent, even if its key was a temporary claim."""
    if isinstance(value, SortedSet):
        for pairs in chunks(list(value.items()), PAIRS_PER_COMMAND):
            yield ("ZADD", key, *[word for member, score in pairs for word in (str(score), member)])
    elif isinstance(value, Hash):
        yield ("HSET", key, *[word for pair in value.items() for word in pair])
        if key.startswith("login:"):
            yield ("PERSIST", key)
    else:
        yield ("SET", key, value)


def pulls(followers: Iterable[tuple[int, int]], push_limit: float) -> Iterator[KeyCommand]:
    """Yield the commands that set the delivery mode of authors with more than `push_limit` followers to pull."""
    for author, count in followers:
        if count > push_limit:
            yield ("SET", keys.delivery(author), PULL)
