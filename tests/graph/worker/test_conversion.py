"""The conversion of a store of format 1, in which the list of a post's reposts also held its quotes."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.archiver.lease import Lease
from graph.errors import StoreReplaced
from graph.log.events import PostPublished
from graph.log.log import IdempotencyKey
from graph.log.notification_groups import NotificationKind
from graph.post_lists import QUOTES, REPOSTS
from graph.repair.repair import Repair
from graph.visibility.views import SYSTEM
from graph.worker import conversion
from tests.support.graph_worlds import (
    PATIENCE,
    Open,
    archive_log,
    background,
    crowd,
    newest,
    posts,
)
from tests.support.stores import Crashed, Death

HOT = {"hot_posts": 2, "hot_slack": 1, "hot_newest": 1}


@pytest.fixture(autouse=True)
def comparisons_wait_for_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests run no worker, so a comparison would wait for the event that reports its corrections."""
    repair = Graph.repair
    monkeypatch.setattr(Graph, "repair", lambda graph: replace(repair(graph), timeout=0.0))


async def as_format_1(raw: Redis, *originals: int) -> None:
    """Turn the store into one of format 1: the quotes of these posts are among their reposts."""
    for post in originals:
        mixed, own = keys.reposts(post), keys.quotes(post)
        for name in (mixed, keys.gone(mixed)):
            await raw.zunionstore(name, [name, name.replace("reposts", "quotes")], aggregate="MAX")
        cold = sum([int(await raw.get(keys.archived_of(name)) or 0) for name in (mixed, own)])
        await raw.set(keys.archived_of(mixed), cold)
        counts = await raw.hmget(keys.post(post), "reposts", "quotes")
        if not await raw.hexists(keys.post(post), "deleted"):
            await raw.hset(keys.post(post), "reposts", str(sum(int(count or 0) for count in counts)))
        await raw.hdel(keys.post(post), "quotes")
        await raw.delete(own, keys.gone(own), keys.archived_of(own))
    token = str(await raw.get(keys.BINDING))
    await raw.set(keys.BINDING, token.removesuffix(":2"))


async def shown(graph: Graph, *originals: int) -> list[tuple[list[int], list[int], tuple[int, int] | None]]:
    """Return the reposts and quotes of each post with their counts, which are None for a deleted post."""
    pages = [
        await graph.timelines.pages_of(SYSTEM, post_list, originals, newest(50)) for post_list in (REPOSTS, QUOTES)
    ]
    found = await graph.posts.get_many(SYSTEM, originals)
    return [
        ([each.id for each in reposts.items], [each.id for each in quotes.items], post and (post.reposts, post.quotes))
        for reposts, quotes, post in zip(*pages, found, strict=True)
    ]


async def conversation(graph: Graph, prefix: str = "") -> list[int]:
    """Return three posts: one with archived quotes and a repost, one with a quote only, and a deleted one."""
    alice, bob, carol = await crowd(graph, 3, prefix)
    many, one, deleted = await posts(graph, alice, "many", "one", "deleted")
    for n in range(6):
        await graph.posts.publish(bob, f"quote {n}", quote_of=many)
    last = await graph.posts.publish(carol, "undone", quote_of=many)
    await graph.posts.delete(carol, last.id)
    await graph.reposts.repost(SYSTEM, carol, many)
    for post in (one, deleted):
        await graph.posts.publish(bob, "quote", quote_of=post)
    await graph.posts.delete(alice, deleted)
    await graph.worker().drain()
    await archive_log(graph)
    return [many, one, deleted]


async def converted(graph: Graph) -> Graph:
    """Project and archive everything, and convert the store."""
    await graph.worker().drain()
    await archive_log(graph)
    assert await graph.conversion.finish()
    assert not await graph.store.run("EXISTS", keys.CONVERTING)
    return graph


async def test_a_worker_moves_the_quotes_into_lists_of_their_own(
    another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes hot and archived quotes, quotes of a deleted post, and the counts. A check then finds nothing."""
    graph = await another(**HOT)
    originals = await conversation(graph)
    before = await shown(graph, *originals)
    assert [numbers for *_, numbers in before] == [(1, 6), (0, 1), None]
    await as_format_1(raw, *originals)
    later = await another(**HOT)
    assert [numbers for *_, numbers in await shown(later, *originals)] == [(7, 0), (1, 0), None]
    monkeypatch.setattr(conversion, "EARLIER_SECONDS", 0.5)

    async with background(later.worker().run()), asyncio.timeout(PATIENCE):
        while not str(await raw.get(keys.BINDING)).endswith(":2") or await raw.exists(keys.CONVERTING):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    assert await shown(later, *originals) == before
    report = await later.repair().run(correct=False)
    assert report.clean, report.examples


async def test_a_conversion_that_failed_unexpectedly_is_repeated(
    another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker continues, and the cause is logged."""
    graph = await another(**HOT)
    originals = await conversation(graph)
    before = await shown(graph, *originals)
    await as_format_1(raw, *originals)
    for name in ("conversion.EARLIER_SECONDS", "conversion.CHECK_SECONDS", "repeated_repair.FIRST_PAUSE_SECONDS"):
        monkeypatch.setattr(f"graph.worker.{name}", 0.01)
    failures, lease = [RuntimeError("unexpected")], Lease(graph.store)
    lease.is_held = True

    def repair() -> Repair:
        if failures:
            raise failures.pop()
        return graph.repair()

    async with asyncio.timeout(PATIENCE):
        await conversion.Conversion(graph.store, graph.log, graph.binding, lease, repair).run()

    assert await shown(graph, *originals) == before
    assert "RuntimeError: unexpected" in caplog.text


async def test_a_process_of_an_earlier_version_can_no_longer_append(another: Open, raw: Redis) -> None:
    """This happens before anything is converted. Processes of this version read the new binding and continue."""
    graph = await another()
    [alice] = await crowd(graph, 1)
    await as_format_1(raw)
    earlier = str(await raw.get(keys.BINDING))
    running = await another()
    await posts(running, alice, "before")

    await graph.binding.raise_format()

    assert await raw.get(keys.BINDING) == f"{earlier}:2"
    assert await raw.get(keys.CONVERTING) == "1"
    with pytest.raises(StoreReplaced):
        await graph.log.append([PostPublished(alice, "late")], IdempotencyKey("-", "late"), binding=earlier)
    await posts(running, alice, "after")
    await converted(graph)


async def test_the_conversion_waits_for_the_archive(another: Open, raw: Redis) -> None:
    """The comparison does not see quotes that are not archived."""
    graph = await another()
    alice, bob = await crowd(graph, 2)
    [post] = await posts(graph, alice, "post")
    quote = await graph.posts.publish(bob, "quote", quote_of=post)
    await as_format_1(raw, post)

    assert not await graph.conversion.finish()
    assert await raw.exists(keys.CONVERTING)
    assert await shown(await converted(graph), post) == [([], [quote.id], (0, 1))]


async def test_the_conversion_includes_what_an_earlier_worker_still_projects(
    another: Open, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier worker checks the format every few seconds, and lists quotes among the reposts until then."""
    graph = await another()
    alice, bob = await crowd(graph, 2)
    [post] = await posts(graph, alice, "post")
    await as_format_1(raw, post)
    await archive_log(graph)
    monkeypatch.setattr(conversion, "EARLIER_SECONDS", 1.5)
    later = await another()

    async with background(later.worker().run()), asyncio.timeout(PATIENCE):
        while not await raw.exists(keys.CONVERTING):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        quote = await graph.posts.publish(bob, "quote", quote_of=post)
        await raw.zadd(keys.reposts(post), {str(quote.id): quote.id})
        await raw.zrem(keys.quotes(post), quote.id)
        while await raw.exists(keys.CONVERTING):  # noqa: ASYNC110
            await asyncio.sleep(0.02)

    assert await shown(later, post) == [([], [quote.id], (0, 1))]


async def test_a_notification_names_a_repost_that_quotes_have_put_into_the_archive(another: Open, raw: Redis) -> None:
    """Before the conversion, only the archived part of the list of reposts contains the repost."""
    graph = await another(**HOT)
    alice, bob, carol = await crowd(graph, 3)
    [post] = await posts(graph, alice, "post")
    repost = await graph.reposts.repost(SYSTEM, carol, post)
    for n in range(6):
        await graph.posts.publish(bob, f"quote {n}", quote_of=post)
    await graph.worker().drain()
    await archive_log(graph)
    await as_format_1(raw, post)
    assert repost.id < int(await raw.zscore(keys.reposts(post), "f") or 0)
    await raw.zrem(keys.reposts(post), repost.id)
    await raw.incr(keys.archived_of(keys.reposts(post)))
    view = graph.visibility.of(alice)

    assert await graph.conversion.finish()

    page = await graph.notifications.page(view, newest(20), frozenset({NotificationKind.REPOST}))
    assert [(each.actors, each.actors_count) for each in page.items] == [((carol,), 1)]


async def test_a_store_of_this_format_is_left_alone(another: Open, raw: Redis) -> None:
    graph = await another()
    await crowd(graph, 1)
    token = await raw.get(keys.BINDING)

    assert await graph.conversion.finish()

    assert (await raw.get(keys.BINDING), await raw.exists(keys.CONVERTING)) == (token, 0)


async def test_the_deletion_of_a_post_whose_reposts_hold_quotes_ends_no_quote(another: Open, raw: Redis) -> None:
    """Hot and archived quotes stay when their post is deleted before the conversion."""
    graph = await another(**HOT)
    many, one, _ = await conversation(graph)
    before = await shown(graph, many, one)
    await as_format_1(raw, many, one)
    [author] = {post.author for post in await graph.posts.get_many(SYSTEM, [many, one]) if post is not None}
    for post in (many, one):
        await graph.posts.delete(author, post)

    assert await shown(await converted(graph), many, one) == [([], quotes, None) for _, quotes, _ in before]


async def test_a_worker_with_the_former_binding_reads_it_again(another: Open, raw: Redis) -> None:
    """Another worker has raised the format. With the former binding, this worker's events would always be refused."""
    graph, other = await another(), await another()
    await as_format_1(raw)
    earlier = await other.binding.token()
    await graph.binding.raise_format()
    assert await other.binding.token() == earlier

    await other.binding.raise_format()

    assert await other.binding.token() == f"{earlier}:2"
    await converted(graph)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_interrupted_conversion_is_continued(
    another: Open, raw: Redis, calls: Iterator[int], after: bool
) -> None:
    """The worker can die before or after any exchange with the store. Meanwhile, posts are quoted and reposted."""
    graph = await another(**HOT)
    originals = await conversation(graph)
    [dave] = await crowd(graph, 1, "late")
    for call in calls:
        await as_format_1(raw, *originals)
        dying = await another(**HOT)
        death = Death(dying.store, call, after=after)
        with suppress(Crashed):
            await dying.conversion.finish()
        await graph.posts.publish(dave, "late", quote_of=originals[1])
        await graph.reposts.repost(SYSTEM, dave, originals[0])
        before = await shown(await converted(graph), *originals)
        assert [numbers for *_, numbers in before] == [(2, 6), (0, 2), None]
        await graph.posts.delete(dave, before[1][1][0])
        await graph.reposts.unrepost(SYSTEM, dave, originals[0])
        if not death.happened:
            break
    assert call > 8
    assert (await (await converted(graph)).repair().run(correct=False)).clean
