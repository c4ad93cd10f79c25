"""Posts: publish, delete, look up."""

from collections.abc import Mapping, Sequence
from functools import partial

from graph import keys
from graph.archive.binding import ArchiveBinding
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected
from graph.log.events import PostDeleted, PostPublished
from graph.log.log import NONCE_SECONDS, IdempotencyKey, Log
from graph.model import Location, Post
from graph.records import POST_COLUMNS, as_post, published_post, read_post, split_posts
from graph.store.store import Store
from graph.terms import digest_of
from graph.validation import Check


class Posts:
    """The posts of the graph: those in the store, and behind them those in the archive."""

    def __init__(self, store: Store, log: Log, commit: Commit, binding: ArchiveBinding) -> None:
        self._store = store
        self._log = log
        self._commit = commit
        self._binding = binding

    async def get_many(self, ids: Sequence[int]) -> list[Post | None]:
        """Look posts up by id; None for those that never were or were deleted.

        One round trip; for those that the store does not know another, until it is seen that the archive is the right
        one, and a query. Raises ArchiveUnavailable if they may be in an archive that does not answer.
        """
        posts, _ = await self.hydrate(ids, {})
        return [posts.get(id_) for id_ in ids]

    async def hydrate(self, ids: Sequence[int], archived: Mapping[int, Post]) -> tuple[dict[int, Post], list[int]]:
        """Look posts up: those that live by id, and the ids of those that were deleted. Costs what `get_many` does.

        `archived` are records that came from the archive already: they count unless the store knows better.
        """
        posts, deleted, absent = await self._store.ask_each(
            "HMGET", [keys.post(post) for post in ids], POST_COLUMNS, partial(split_posts, ids)
        )
        if absent:
            posts.update((id_, archived[id_]) for id_ in absent if id_ in archived)
            missing = [id_ for id_ in absent if id_ not in archived]
            found = await self._binding.look_up(missing) if missing else []
            posts.update((post.id, post) for post in found if post is not None)
        return posts, deleted

    async def are_deleted(self, ids: Sequence[int]) -> list[bool]:
        """Tell of each post whether it was deleted. One round trip."""
        return [bool(reply) for reply in await self._store.read([("HEXISTS", keys.post(p), "deleted") for p in ids])]

    async def publish(
        self,
        author: int,
        text: str,
        *,
        platform: str | None = None,
        location: Location | None = None,
        idempotency_key: str | None = None,
    ) -> Post:
        """Publish a post; when it returns, the first followers have it, and the log will bring it to the others.

        Raises Rejected: TEXT_EMPTY, TEXT_TOO_LONG, INVALID, IDEMPOTENCY_MISMATCH; NOT_FOUND if a repeated key names a
        post that was deleted since. Four round trips, and one more for every 1,000 of the first followers.
        """
        check = Check()
        text = check.text(text)
        platform = check.platform(platform)
        check.location(location)
        key = check.idempotency_key(idempotency_key)
        check.done()
        latitude, longitude = (location.latitude, location.longitude) if location else (None, None)
        body = PostPublished(author, text, platform, latitude, longitude)
        [event] = await self._commit([body], IdempotencyKey(author, key) if key is not None else None)
        if key is not None and (await self.get_many([event.number]))[0] is None:
            raise Rejected.because(
                ProblemCode.NOT_FOUND, "The post of this idempotency key was deleted.", "idempotencyKey"
            )
        return published_post(event.number, body)

    async def delete(self, viewer: int, post: int) -> None:
        """Permanently delete one of the viewer's posts. Repeating it is fine while the log remembers.

        Deletions of one post that race append one event: a second one would answer guesses about a post that is gone.
        Raises Rejected: NOT_FOUND, NOT_ALLOWED. Four round trips; one more and a query for an archived post.
        """
        [row] = await self._store.read([read_post(post)])
        deletion = row[POST_COLUMNS.index("deleted")]
        if deletion is not None:
            event = await self._log.get(int(deletion))
            if event is None or not isinstance(event.body, PostDeleted) or event.body.author != viewer:
                raise not_found()
            return
        found = as_post(post, row) or (await self.get_many([post]))[0]
        if found is None:
            raise not_found()
        if found.author != viewer:
            raise Rejected.because(ProblemCode.NOT_ALLOWED, "Only its author can delete a post.", "id")
        idempotency_key = IdempotencyKey("-", f"deletion:{post}", NONCE_SECONDS)
        await self._commit([PostDeleted(viewer, post, digest_of(found.text))], idempotency_key)


def not_found() -> Rejected:
    """Make the rejection of an id that names no post."""
    return Rejected.because(ProblemCode.NOT_FOUND, "There is no such post.", "id")
