"""The requests that create posts and lists: with an idempotency key, each creates one, even after failovers.

A failover of the log's shard can lose a creation and its idempotency key, while other shards or the archive still hold
what was created. A client that got no reply repeats its request, which creates another one. So before a lost creation
is kept, its event claims the key again. If a repeated request already holds the key, the lost creation is deleted
instead. Both decisions are made in the slot of the log, so exactly one of the two remains, whichever comes first.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from operator import attrgetter
from typing import TypeAlias, TypeVar

from graph import keys
from graph.log.events import Event, EventBody, ListCreated, PostPublished, UserCreated
from graph.log.log import KEY_SECONDS, IdempotencyKey, Log
from graph.model import number_at
from graph.store.batches import send_in_batches
from graph.store.commands import script
from graph.store.store import Store

BYTES = 16
Creation: TypeAlias = PostPublished | ListCreated
"""The events that create something for a user under an idempotency key. The number of the event is its id."""
CREATIONS = (PostPublished, ListCreated)
C = TypeVar("C", PostPublished, ListCreated)


def request_of(kind: type[EventBody], creator: int | str, idempotency_key: str) -> str:
    """Return the id of a request: a hash of the event's kind, the creator and the idempotency key.

    It has 22 characters.
    """
    return hash_of(f"{kind.__name__} {creator} {idempotency_key}")


def hash_of(text: str) -> str:
    """Return a 22-character hash of a text."""
    return urlsafe_b64encode(sha256(text.encode()).digest()[:BYTES]).rstrip(b"=").decode()


def key_of(kind: type[Creation], creator: int, idempotency_key: str | None, content: object) -> IdempotencyKey | None:
    """Return the key under which an event of this kind is appended; None without an idempotency key.

    A repetition must have the same `content`, which is compared by a hash of its `repr`. The hash depends on the
    idempotency key, so that nobody who reads the store can test guesses at the content.
    """
    if idempotency_key is None:
        return None
    digest = hash_of(f"{idempotency_key} {content!r}")
    return IdempotencyKey(creator, request_of(kind, creator, idempotency_key), request=digest)


def append_key(body: UserCreated, seconds: int) -> IdempotencyKey:
    """Return the key under which a sign-up is appended only once. It is kept for `seconds`.

    The key does not reveal the nonce. So after an erasure, nobody can test guesses at the login and the name against
    the hash of the event that is stored under the key.
    """
    return IdempotencyKey("-", hash_of(body.nonce), seconds)


def of_request(body: C, key: IdempotencyKey | None) -> C:
    """Return a creation with the id of its request, if there is one."""
    return body if key is None else replace(body, request=key.key)


async def repetition(log: Log, key: IdempotencyKey | None) -> Event | None:
    """Return the creation that an earlier request with this key has appended, if the log holds it.

    Use it if the same request would be refused now, because users or posts have changed since. Two round trips. Raises
    Rejected (IDEMPOTENCY_MISMATCH).
    """
    events = None if key is None else await log.repeated(key)
    return events[0] if events else None


def creator_of(body: Creation) -> int:
    """Return the user who created the post or list."""
    return body.author if isinstance(body, PostPublished) else body.owner


async def superseded(store: Store, events: Iterable[Event]) -> set[int]:
    """Return the numbers of lost events whose requests were repeated. The others claim their keys again.

    Of several events of one request, the newest claims the key: the client has repeated the request after the loss of
    the others, and received the newest in reply.

    Events that are older than the lifetime of a key are left out: the key may belong to another request by now. So are
    events without a key, and lists of erased users, whose ids of requests are empty. One round trip for every 500
    events with keys.
    """
    claim = script("claim_request")
    oldest = number_at(datetime.now(UTC) - timedelta(seconds=KEY_SECONDS))
    requests = [
        (event.number, keys.idempotency(creator_of(event.body), event.body.request))
        for event in sorted(events, key=attrgetter("number"), reverse=True)
        if isinstance(event.body, CREATIONS) and event.body.request and event.number > oldest
    ]
    commands = [claim.call([name], number, KEY_SECONDS) for number, name in requests]
    replies = await send_in_batches(store, commands)
    return {number for (number, _), is_owner in zip(requests, replies, strict=True) if not is_owner}
