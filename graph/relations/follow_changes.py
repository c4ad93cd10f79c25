"""The projection of follows: `followers` of the followee and `following` of the follower.

A follower is added to `followers` before the followee is added to `following`, and removed from `followers` last.
Fan-out, which reads `followers`, therefore never misses a viewer who follows the author.

Both are versioned sets with a third part: held follows, which do not count because of a block (`add_follows.lua`).
"""

from collections.abc import Callable, Iterable, Sequence

import orjson

from graph import keys
from graph.log.events import Followed, Unfollowed
from graph.relations.versioned_sets import by_owner, removal, set_keys
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

OWNERS_PER_SCRIPT = 500


async def add_follows(store: Store, events: Sequence[tuple[int, Followed]], notices: Sequence[Command] = ()) -> None:
    """Add follows, and delete the home caches of the followers. Two round trips.

    The second round trip also sends `notices`, the commands that notify the followed users.
    """
    followers = ((body.followee, number, body.follower) for number, body in events)
    following = ((body.follower, number, body.followee) for number, body in events)
    await send_in_batches(store, additions(store, keys.followers, followers))
    await send_in_batches(store, [*additions(store, keys.following, following, unlink_home=True), *notices])


async def remove_follows(store: Store, events: Sequence[tuple[int, Unfollowed]], trim_up_to: int) -> None:
    """Remove follows, and delete the home caches of the followers. Two round trips.

    Tombstones with numbers up to `trim_up_to` are trimmed.
    """
    following = ((body.follower, body.followee, number) for number, body in events)
    followers = ((body.followee, body.follower, number) for number, body in events)
    await send_in_batches(store, removals(keys.following, following, trim_up_to, unlink_home=True))
    await send_in_batches(store, removals(keys.followers, followers, trim_up_to))


def additions(
    store: Store, key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], *, unlink_home: bool = False
) -> list[Command]:
    """Return the commands that add follows, given as (owner, number, other user), to the owners' lists.

    With `unlink_home`, the home cache of each owner whose list changes is deleted too.
    """
    commands = []
    for group in store.together(by_owner(changes), lambda change: key(change[0]), OWNERS_PER_SCRIPT):
        names = []
        for owner, _ in group:
            names += [*follow_keys(key, owner), *set_keys(keys.blocking, owner), *set_keys(keys.blockers, owner)]
            names += [keys.home(owner)] if unlink_home else []
        pairs = orjson.dumps([pairs for _, pairs in group])
        commands.append(script("add_follows").call(names, 8 if unlink_home else 7, pairs))
    return commands


def removals(
    key: Callable[[int], str], changes: Iterable[tuple[int, int, int]], trim_up_to: int, *, unlink_home: bool = False
) -> list[Command]:
    """Return the commands that remove follows, given as (owner, other user, number), from the owners' lists."""
    return [
        removal([key(owner), keys.held(key(owner))], keys.home(owner) if unlink_home else None, trim_up_to, pairs)
        for owner, pairs in by_owner(changes)
    ]


def follow_keys(key: Callable[[int], str], owner: int) -> list[str]:
    """Return the keys of an owner's list of follows, its tombstones and its held follows."""
    return [*set_keys(key, owner), keys.held(key(owner))]
