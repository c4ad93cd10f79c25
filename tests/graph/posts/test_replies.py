"""Replies, threads and quotes: what is published, on which lists it appears, and what is counted."""

from collections.abc import Callable, Sequence

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.log.events import PostPublished
from graph.model import Post
from graph.post_lists import QUOTES, REPLIED, REPLIES, REPOSTS, PostList
from graph.posts.posts import deletion_of
from graph.projections.mode import Mode
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import (
    Open,
    archive_log,
    befriend,
    codes,
    counted,
    counts_of,
    home,
    ids,
    newest,
    own,
    people,
)


async def listed(graph: Graph, post_list: PostList, owner: int, size: int = 3) -> list[int]:
    """Return all posts of a list, read page by page."""
    found: list[int] = []
    while True:
        after = found[-1] if found else None
        [page] = await graph.timelines.pages_of(SYSTEM, post_list, [owner], newest(size, after=after))
        found += ids(page.items)
        if not page.has_next:
            return found


async def current(graph: Graph, *posts: Post) -> Sequence[Post | None]:
    """Return the posts in their current state."""
    return await graph.posts.get_many(SYSTEM, [post.id for post in posts])


async def test_a_reply_knows_its_thread(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    first = await graph.posts.publish(bob, "first", reply_to=root.id)
    second = await graph.posts.publish(alice, "second", reply_to=first.id)

    assert (root.reply_to, root.root, root.ancestors, root.listed) == (None, None, (), True)
    assert (first.reply_to, first.root, first.root_author, first.ancestors) == (root.id, root.id, alice, ())
    assert (second.reply_to, second.root, second.root_author) == (first.id, root.id, alice)
    assert second.ancestors == (root.id,)
    assert [post and post.replies for post in await current(graph, root, first, second)] == [1, 1, 0]
    assert await current(graph, second) == [second]


async def test_a_reply_remembers_its_nearest_ancestors(graph: Graph) -> None:
    [alice] = await people(graph, "alice")
    chain = [await graph.posts.publish(alice, "root")]
    for n in range(25):
        chain.append(await graph.posts.publish(alice, f"reply {n}", reply_to=chain[-1].id))

    last = chain[-1]
    assert [*last.ancestors, last.reply_to] == [post.id for post in chain[-21:-1]]
    assert last.root == chain[0].id


async def test_only_a_reply_that_continues_an_own_thread_is_listed(graph: Graph) -> None:
    """Both the parent and the first post must be the author's own. All replies are in the author's replies."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, alice, bob)
    root = await graph.posts.publish(alice, "root")
    own_reply = await graph.posts.publish(alice, "own", reply_to=root.id)
    foreign = await graph.posts.publish(bob, "foreign", reply_to=own_reply.id)
    answer = await graph.posts.publish(alice, "answer", reply_to=foreign.id)
    again = await graph.posts.publish(bob, "again", reply_to=foreign.id)

    assert [post.listed for post in (own_reply, foreign, answer, again)] == [True, False, False, False]
    assert await own(graph, alice) == [own_reply.id, root.id]
    assert await own(graph, bob) == []
    for _ in range(2):
        assert await home(graph, carol) == [own_reply.id, root.id]
        await graph.timelines.wait_for_rebuilds()
    assert await listed(graph, REPLIED, alice) == [answer.id, own_reply.id]
    assert await listed(graph, REPLIED, bob) == [again.id, foreign.id]
    assert await listed(graph, REPLIES, foreign.id) == [again.id, answer.id]
    assert [counts.posts for counts in await counts_of(graph, [alice, bob])] == [2, 0]


async def test_replies_survive_their_parent(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    reply = await graph.posts.publish(bob, "reply", reply_to=root.id)

    await graph.posts.delete(alice, root.id)

    assert await current(graph, root, reply) == [None, reply]
    assert await listed(graph, REPLIED, bob) == [reply.id]
    assert await listed(graph, REPLIES, root.id) == [reply.id]
    assert await graph.store.run("HKEYS", keys.post(root.id)) == ["deleted"]


async def test_a_deleted_reply_leaves_all_lists(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    gone = await graph.posts.publish(bob, "gone", reply_to=root.id, quote_of=root.id)
    kept = await graph.posts.publish(bob, "kept", reply_to=root.id, quote_of=root.id)

    assert await graph.posts.delete(bob, gone.id) == gone

    assert await listed(graph, REPLIED, bob) == await listed(graph, REPLIES, root.id) == [kept.id]
    assert await listed(graph, QUOTES, root.id) == [kept.id]
    [now] = await current(graph, root)
    assert now is not None
    assert (now.replies, now.reposts, now.quotes) == (1, 0, 1)
    await graph.posts.delete(bob, kept.id)
    assert await current(graph, root) == [root]


async def test_a_quote_is_an_ordinary_post_that_names_another(graph: Graph) -> None:
    """It stays when the original is deleted."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, carol, bob)
    original = await graph.posts.publish(alice, "original")
    quote = await graph.posts.publish(bob, "look", quote_of=original.id)

    assert quote.repost_of == original.id
    assert await home(graph, carol) == await own(graph, bob) == await listed(graph, QUOTES, original.id) == [quote.id]
    assert await listed(graph, REPOSTS, original.id) == []
    assert [post and (post.reposts, post.quotes) for post in await current(graph, original)] == [(0, 1)]

    await graph.posts.delete(alice, original.id)

    assert await current(graph, quote) == [quote]
    assert await home(graph, carol) == [quote.id]


@pytest.mark.parametrize("name", ["reply_to", "quote_of"])
async def test_unknown_and_deleted_posts_are_not_found(graph: Graph, name: str) -> None:
    """Nothing is written."""
    [alice] = await people(graph, "alice")
    gone = await graph.posts.publish(alice, "gone")
    await graph.posts.delete(alice, gone.id)
    last = await graph.log.last()

    for unknown in (gone.id, alice, 7, last + 1_000_000):
        with pytest.raises(Rejected) as rejected:
            await graph.posts.publish(alice, "text", **{name: unknown})  # type: ignore[arg-type]
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
        assert [problem.field for problem in rejected.value.problems] == [
            ("replyToId" if name == "reply_to" else "quotedPostId",)
        ]
    assert await graph.log.last() == last


async def test_both_targets_can_be_unknown_at_once(graph: Graph) -> None:
    [alice] = await people(graph, "alice")

    with pytest.raises(Rejected) as rejected:
        await graph.posts.publish(alice, "text", reply_to=7, quote_of=8)

    assert [problem.field for problem in rejected.value.problems] == [("replyToId",), ("quotedPostId",)]


async def test_the_idempotency_key_includes_the_targets(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root, other = [await graph.posts.publish(alice, text) for text in ("root", "other")]
    reply = await graph.posts.publish(bob, "hi", reply_to=root.id, idempotency_key="k")
    await graph.posts.publish(alice, "again", reply_to=reply.id)

    again = await graph.posts.publish(bob, "hi", reply_to=root.id, idempotency_key="k")

    assert again == reply._replace(replies=1)
    for targets in ({"reply_to": other.id}, {"quote_of": root.id}, {"reply_to": root.id, "quote_of": root.id}, {}):
        with pytest.raises(Rejected) as rejected:
            await graph.posts.publish(bob, "hi", **targets, idempotency_key="k")  # type: ignore[arg-type]
        assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]


async def test_a_retry_after_the_deletion_of_the_parent_returns_the_reply(graph: Graph) -> None:
    """Perhaps only the response to the first request was lost."""
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    reply = await graph.posts.publish(bob, "hi", reply_to=root.id, idempotency_key="k")
    await graph.posts.delete(alice, root.id)

    assert await graph.posts.publish(bob, "hi", reply_to=root.id, idempotency_key="k") == reply
    with pytest.raises(Rejected) as rejected:
        await graph.posts.publish(bob, "other", reply_to=root.id, idempotency_key="k")
    assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]
    with pytest.raises(Rejected) as rejected:
        await graph.posts.publish(bob, "hi", reply_to=root.id, idempotency_key="another")
    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]


async def test_a_reply_costs_one_more_round_trip(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    async with counted(graph) as plain:
        await graph.posts.publish(bob, "plain")
    async with counted(graph) as reply:
        await graph.posts.publish(bob, "reply", reply_to=root.id, quote_of=root.id)

    assert reply.round_trips <= plain.round_trips + 1


async def test_events_may_be_projected_in_any_order(graph: Graph) -> None:
    """A deletion may come before its publication, and a reply before its parent."""
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.commit([PostPublished(alice, "root")])
    reply = await graph.posts.publish(bob, "reply", reply_to=root[0].number, quote_of=root[0].number)
    [published] = await graph.log.newest(reply.id, 1)
    await graph.store.send([("DEL", keys.post(root[0].number))])
    [deleted] = await graph.commit([deletion_of(reply)])

    for events in ([deleted], [published], [deleted, published], root, [published, *root]):
        await graph.projections.project(events, Mode.WORKER)

    await graph.store.run("DEL", keys.post(reply.id))  # the tombstone was dropped, but not those of the lists
    await graph.projections.project([published], Mode.WORKER)

    assert await listed(graph, REPLIED, bob) == await listed(graph, REPLIES, root[0].number) == []
    [post] = await graph.posts.get_many(SYSTEM, [root[0].number])
    assert post is not None
    assert (post.replies, post.reposts, post.quotes) == (0, 0, 0)


async def test_archived_posts_keep_their_replies_and_counts(another: Open) -> None:
    """Lists are cut like timelines: the oldest entries and the records of old posts are in the archive only."""
    graph = await another(hot_posts=2, hot_slack=1, hot_newest=1)
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    replies = [await graph.posts.publish(bob, f"reply {n}", reply_to=root.id, quote_of=root.id) for n in range(9)]
    for n in range(9):
        await graph.posts.publish(alice, f"post {n}")
    await graph.worker().drain()
    await archive_log(graph)
    await graph.scan.run_pass()

    everything = [reply.id for reply in replies[::-1]]
    for post_list, owner in ((REPLIED, bob), (REPLIES, root.id), (QUOTES, root.id)):
        assert await graph.store.run("ZCARD", post_list.key(owner)) <= 4
        assert await listed(graph, post_list, owner) == everything
    [now, *seen] = await current(graph, root, *replies)
    assert now == root._replace(replies=9, quotes=9)
    assert seen == replies
    assert await graph.store.run("HGETALL", keys.post(root.id)) == {"replies": "9", "quotes": "9"}
    assert await graph.store.run("EXISTS", keys.post(replies[0].id)) == 0

    await graph.posts.delete(bob, replies[0].id)
    await graph.posts.delete(bob, replies[8].id)
    reply = await graph.posts.publish(alice, "late", reply_to=replies[1].id)

    assert reply.ancestors == (root.id,)
    assert [post and post.replies for post in await current(graph, root, replies[1])] == [7, 1]
    for post_list, owner in ((REPLIED, bob), (REPLIES, root.id), (QUOTES, root.id)):
        assert await listed(graph, post_list, owner) == everything[1:-1]


async def test_archived_replies_are_not_counted_twice(another: Open) -> None:
    """A projection that runs again after the cut changes nothing."""
    graph = await another(hot_posts=2, hot_slack=1, hot_newest=1)
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    replies = [await graph.posts.publish(bob, f"reply {n}", reply_to=root.id) for n in range(6)]
    await graph.worker().drain()
    await archive_log(graph)
    events = await graph.log.newest(replies[-1].id, 6)

    await graph.projections.project(events, Mode.WORKER)
    [now] = await current(graph, root)
    assert now is not None
    assert now.replies == 6
    assert await listed(graph, REPLIES, root.id) == [reply.id for reply in replies[::-1]]

    await graph.posts.publish(bob, "one more", reply_to=root.id)
    [now] = await current(graph, root)
    assert now is not None
    assert now.replies == 7


async def test_a_listed_reply_keeps_its_record_while_it_is_in_the_timeline(another: Open) -> None:
    """The record stays although the reply has left the hot replies of its author."""
    graph = await another(hot_posts=4, hot_slack=0, hot_newest=1)
    alice, bob = await people(graph, "alice", "bob")
    mine, other = await graph.posts.publish(alice, "mine"), await graph.posts.publish(bob, "other")
    hot = await graph.posts.publish(alice, "listed", reply_to=mine.id)
    for n in range(5):
        await graph.posts.publish(alice, f"reply {n}", reply_to=other.id)
    await graph.worker().drain()
    await archive_log(graph)

    assert await graph.store.run("ZSCORE", keys.replied(alice), str(hot.id)) is None
    assert await graph.store.run("ZSCORE", keys.posts(alice), str(hot.id)) is not None
    assert await graph.store.run("HGET", keys.post(hot.id), "text") == "listed"
    assert len(await listed(graph, REPLIED, alice)) == 6


@pytest.mark.parametrize("key", [keys.blocking, keys.blockers])
async def test_replies_and_quotes_across_a_block_are_refused(
    graph: Graph, raw: Redis, key: Callable[[int], str]
) -> None:
    """Replies and quotes are refused in either direction. A retry of an earlier reply returns that reply."""
    alice, bob = await people(graph, "alice", "bob")
    root = await graph.posts.publish(alice, "root")
    earlier = await graph.posts.publish(bob, "earlier", reply_to=root.id, idempotency_key="k")
    await raw.zadd(key(bob), {str(alice): 1})
    last = await graph.log.last()

    for targets, field in (({"reply_to": root.id}, "replyToId"), ({"quote_of": root.id}, "quotedPostId")):
        with pytest.raises(Rejected) as rejected:
            await graph.posts.publish(bob, "text", **targets)  # type: ignore[arg-type]
        assert [(problem.code, problem.field) for problem in rejected.value.problems] == [
            (ProblemCode.BLOCKED, (field,))
        ]
    assert await graph.posts.publish(bob, "earlier", reply_to=root.id, idempotency_key="k") == earlier
    assert await graph.log.last() == last


async def test_replies_of_hidden_users_are_left_out_and_counted(graph: Graph, raw: Redis) -> None:
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    root = await graph.posts.publish(alice, "root")
    shown = await graph.posts.publish(carol, "shown", reply_to=root.id, quote_of=root.id)
    for n in range(4):
        await graph.posts.publish(bob, f"hidden {n}", reply_to=root.id, quote_of=root.id)
    await raw.zadd(keys.blocking(alice), {str(bob): 1})
    view = graph.visibility.of(alice)

    for post_list in (REPLIES, QUOTES):
        [page] = await graph.timelines.pages_of(view, post_list, [root.id], newest(2))
        assert (ids(page.items), page.has_next) == ([shown.id], False)
    [page] = await graph.timelines.pages_of(graph.visibility.of(alice), REPLIED, [bob], newest(2))
    assert (page.items, page.has_next) == ((), False)
    [now] = await graph.posts.get_many(view, [root.id])
    assert now is not None
    assert (now.replies, now.quotes) == (5, 5)
