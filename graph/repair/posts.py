"""The differences and corrections that several comparisons of posts share.

`subject` is the id that a comparison must compare again: an author or a post.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from graph import keys
from graph.archive.event_rows import event_row
from graph.archive.rows import DELETION, REDACTED, REPOST, UNREPOST, EventsRefused
from graph.chunks import chunks
from graph.expected.stored import record
from graph.fold.reading import ROWS
from graph.log.events import Event, PostDeleted, PostPublished, publisher_of
from graph.log.log import NONCE_SECONDS, IdempotencyKey
from graph.log.requests import superseded
from graph.post_lists import TIMELINE, PostList
from graph.posts.posts import deletion_of
from graph.records import as_published, published_post
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Scope, set_element, set_fields
from graph.store.commands import Command, script

POSTS_AT_ONCE = 500

Record = Mapping[str, str]


def readable(post: int, held: Record) -> PostPublished | None:
    """Return the event that a record was written from, or None if the record is incomplete."""
    try:
        return as_published(held) if held.get("id") == str(post) else None
    except ValueError:
        return None


def set_listing(
    owner: int, post: int, found: int | None, new: int | None, floor: int | None, post_list: PostList = TIMELINE
) -> Command:
    """Return the command that sets a post's state in a list, if the state and the floor are still as found."""
    return set_element(post_list.key, (owner, post), found, new, floor=floor)


def record_wrong(author: int, post: int, body: PostPublished, held: Record) -> Difference:
    """Return the difference that reports a hot post whose record is missing or wrong.

    If a cut of the timeline raises the floor above the post before the correction, the corrected record is superfluous,
    and `RecordComparison` finds it.
    """
    text = f"post {post} by user {author}, {'wrong' if held else 'missing'}"
    return Difference(defects.RECORD_WRONG, author, post, text, [set_fields(keys.post(post), held, record(post, body))])


def record_left(post: int, held: Record, deletion: int | None) -> Difference:
    """Return the difference that reports the record of a deleted post or, without `deletion`, of an archived post."""
    if deletion is None:
        command = script("free_post").call([keys.post(post)], "")
        return Difference(defects.RECORD_LEFT, post, post, f"post {post}, archived", [command])
    command = set_fields(keys.post(post), held, {"deleted": str(deletion)})
    return Difference(defects.RECORD_LEFT, post, post, f"post {post}, deleted by event {deletion}", [command])


def deletion_unknown(scope: Scope, subject: int, author: int, post: int, then: Sequence[Command] = ()) -> Difference:
    """Return the difference that reports a post that the archive shows although the store has a tombstone.

    The correction deletes the post again, and then sends the commands `then`.
    """

    async def delete_again() -> bool:
        key = IdempotencyKey("-", f"deletion:{post}:again", NONCE_SECONDS)
        [shown] = await scope.archive.get_many([post])
        await scope.commit([PostDeleted(author, post) if shown is None else deletion_of(shown)], key)
        await scope.send(then)
        return True

    return Difference(defects.DELETION_UNKNOWN, subject, post, f"post {post} by user {author}", delete_again)


def post_unknown(
    scope: Scope, subject: int, post: int, body: PostPublished | None, then: Sequence[Command], otherwise: Command
) -> Difference:
    """Return the difference that reports a post that is not in the archive.

    `body` is the event that the record of the post holds. The correction adds the event to the archive, and then sends
    the commands `then`. If the client has repeated the request, the correction deletes the post instead. Without a
    body, the correction is the command `otherwise`.
    """

    async def insert(body: PostPublished) -> bool:
        event = Event(post, publisher_of(body))
        if await superseded(scope.store, [event]):
            key = IdempotencyKey("-", f"deletion:{post}:again", NONCE_SECONDS)
            await scope.commit([deletion_of(published_post(post, body))], key, erasing=True)
            return True
        try:
            await scope.archive.insert([event_row(event)], store=await scope.binding.store_id())
        except EventsRefused:
            return False
        await scope.send(then)
        return True

    text = f"post {post}, {'without a readable record' if body is None else f'by user {body.author}'}"
    return Difference(defects.POST_UNKNOWN, subject, post, text, [otherwise] if body is None else partial(insert, body))


async def lost_among(scope: Scope, posts: Iterable[int], kinds: Mapping[int, str]) -> set[int]:
    """Return the posts that neither the archive nor the store holds. `kinds` has the kinds of the archived posts.

    One round trip per 1,000 posts that the archive does not know.
    """
    unknown = [post for post in posts if post not in kinds]
    held = await scope.records(unknown) if unknown else {}
    return {post for post in unknown if readable(post, held[post]) is None}


async def deletions(scope: Scope, posts: Sequence[int]) -> dict[int, int]:
    """Return, by post, the number of the first event that deleted the post or ended the plain repost.

    One query for every 500 posts, and one or two more for posts without a deletion event.
    """
    found: dict[int, int] = {}
    for some in chunks(posts, POSTS_AT_ONCE):
        rows = await scope.archive.by_subject(some, [DELETION], 0, ROWS)
        found |= {row.subject: row.number for row in reversed(rows) if row.subject and row.number <= scope.up_to}
    reposts = await scope.archive.rows([post for post in posts if post not in found])
    return found | await ends(scope, {row.number: (row.actor, row.subject) for row in reposts if row.subject})


async def ends(scope: Scope, reposts: Mapping[int, tuple[int, int]]) -> dict[int, int]:
    """Return, by repost, the number of the event that ended the plain repost. One query for every 500 reposts.

    `reposts` has the user and the original of each repost.
    """
    found: dict[int, int] = {}
    for some in chunks(list(reposts.items()), POSTS_AT_ONCE):
        originals = {original for _, (_, original) in some}
        rows = await scope.archive.by_subject(originals, [REPOST, REDACTED, UNREPOST], 0, ROWS)
        for repost, pair in some:
            later = [row.number for row in rows if (row.actor, row.subject) == pair and row.number > repost]
            if later and min(later) <= scope.up_to:
                found[repost] = min(later)
    return found
