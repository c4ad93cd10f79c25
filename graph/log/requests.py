"""The requests that publish posts: a request with an idempotency key publishes one post, also after failovers.

A failover of the log's shard can lose a post and its idempotency key, while other shards or the archive still hold the
post. A client that got no reply repeats its request, which publishes another post. So before a lost post is kept, its
event claims the key again. If a repeated request already holds the key, the lost post is deleted instead. Both
decisions are made in the slot of the log, so exactly one of the two posts remains, whichever comes first.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter

from graph import keys
from graph.log.events import Event, PostPublished
from graph.log.log import KEY_SECONDS
from graph.model import number_at
from graph.store.batches import send_in_batches
from graph.store.commands import script
from graph.store.store import Store

BYTES = 16


def request_of(author: int, idempotency_key: str) -> str:
    """Return the id of a request: a hash of its author and idempotency key, with 22 characters."""
    return urlsafe_b64encode(sha256(f"{author} {idempotency_key}".encode()).digest()[:BYTES]).rstrip(b"=").decode()


async def superseded(store: Store, events: Iterable[Event]) -> set[int]:
    """Return the numbers of lost events whose requests were repeated. The others claim their keys again.

    Of several events of one request, the newest claims the key: the client has repeated the request after the loss of
    the others, and was told of the newest.

    Events that are older than the lifetime of a key are left out: the key may belong to another request by now.
    One round trip for every 500 events with keys.
    """
    claim = script("claim_request")
    oldest = number_at(datetime.now(UTC) - timedelta(seconds=KEY_SECONDS))
    requests = [
        (event.number, keys.idempotency(event.body.author, event.body.request))
        for event in sorted(events, key=attrgetter("number"), reverse=True)
        if isinstance(event.body, PostPublished) and event.body.request is not None and event.number > oldest
    ]
    commands = [claim.call([name], number, KEY_SECONDS) for number, name in requests]
    replies = await send_in_batches(store, commands)
    return {number for (number, _), is_owner in zip(requests, replies, strict=True) if not is_owner}
