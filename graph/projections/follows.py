"""The projection of follows: two versioned sets, `followers` of the followee and `following` of the follower.

A follower is in `followers` before the followee is in `following`, and is removed from it afterwards. Fan-out, which
reads `followers`, therefore never misses a viewer who follows the author.
"""

from collections.abc import Sequence

from graph import keys
from graph.log.events import Followed, Unfollowed
from graph.projections.batches import send_in_batches
from graph.projections.versioned_sets import additions, removals
from graph.store.store import Store


async def add_follows(store: Store, events: Sequence[tuple[int, Followed]]) -> None:
    """Add follows, and delete the home caches of the followers. Two round trips."""
    followers = ((body.followee, number, body.follower) for number, body in events)
    following = ((body.follower, number, body.followee) for number, body in events)
    await send_in_batches(store, additions(store, keys.followers, followers))
    await send_in_batches(store, additions(store, keys.following, following, unlink_home=True))


async def remove_follows(store: Store, events: Sequence[tuple[int, Unfollowed]], trim_up_to: int) -> None:
    """Remove follows, and delete the home caches of the followers. Two round trips.

    Tombstones with numbers up to `trim_up_to` are trimmed.
    """
    following = ((body.follower, body.followee, number) for number, body in events)
    followers = ((body.followee, body.follower, number) for number, body in events)
    await send_in_batches(store, removals(keys.following, following, trim_up_to, unlink_home=True))
    await send_in_batches(store, removals(keys.followers, followers, trim_up_to))
