"""The projection of blocks.

A block is in the slots of both users: in `blocking` of the blocker and `blockers` of the blocked user. The script also
moves the follows between the two users: a block turns them into held follows or tombstones, and an unblock may make
held follows count again.

The order of the steps is checked by `tests/properties/test_block_rules.py`: the blocker's slot; the slot of the blocked
user, with that user's home cache; last, the blocker's home cache. A cache is deleted even if the step changes nothing:
an interrupted projection may have changed the slot, and a cache that was rebuilt in between may miss posts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from graph import keys
from graph.chunks import chunks
from graph.log.events import Blocked, Unblocked
from graph.relations.follow_changes import follow_keys
from graph.relations.versioned_sets import set_keys
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

TRIPLES_PER_SCRIPT = 500


async def change_blocks(store: Store, events: Sequence[tuple[int, Blocked | Unblocked]], trim_up_to: int) -> None:
    """Add and remove blocks in both slots, and delete the home caches of both users. Three round trips."""
    changes = [(number, body.blocker, body.blocked, type(body) is Blocked) for number, body in events]
    blocking = ((blocker, blocked, number, blocks) for number, blocker, blocked, blocks in changes)
    blockers = ((blocked, blocker, number, blocks) for number, blocker, blocked, blocks in changes)
    await send_in_batches(store, block_changes(keys.blocking, keys.blockers, blocking, trim_up_to))
    await send_in_batches(store, block_changes(keys.blockers, keys.blocking, blockers, trim_up_to, unlink_home=True))
    homes = sorted({keys.home(blocker) for _, blocker, _, _ in changes})
    await send_in_batches(store, [("UNLINK", home) for home in homes])


def block_changes(
    key: Callable[[int], str],
    opposite: Callable[[int], str],
    changes: Iterable[tuple[int, int, int, bool]],
    trim_up_to: int,
    *,
    unlink_home: bool = False,
) -> list[Command]:
    """Return the commands that apply changes, as (owner, other user, number, True for a block), to owners' slots."""
    words: defaultdict[int, list[str]] = defaultdict(list)
    for owner, user, number, blocks in changes:
        words[owner] += (str(user), str(number), "block" if blocks else "unblock")
    commands = []
    for owner, triples in words.items():
        names = [*set_keys(key, owner), *set_keys(opposite, owner)]
        names += [*follow_keys(keys.following, owner), *follow_keys(keys.followers, owner)]
        names += [keys.home(owner)] if unlink_home else []
        commands += [script("block").call(names, trim_up_to, *some) for some in chunks(triples, 3 * TRIPLES_PER_SCRIPT)]
    return commands
