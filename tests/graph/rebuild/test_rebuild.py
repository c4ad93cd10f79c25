"""A store that was lost is rebuilt from the archive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from graph import Graph, keys
from graph.errors import AccountDeleted, ProblemCode, Rejected
from graph.log.account_events import UserDeleted, UserErased, login_hash
from graph.log.events import PostPublished
from graph.rebuild.rebuild import Rebuild
from graph.visibility.views import SYSTEM
from tests.graph.rebuild.stores import SMALL, archive_all, content, empty_store, opened, populate
from tests.support.graph_worlds import PASSWORD, codes, home, own, people, posts


@asynccontextmanager
async def on_an_empty_store(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph, and close it afterwards."""
    await empty_store(store_url)
    graph = await opened(store_url, archive_url)
    try:
        yield graph
    finally:
        await graph.close()


@pytest.fixture
async def lost(store_url: str, url: str) -> AsyncIterator[Graph]:
    """Open a graph whose store can be lost."""
    async with on_an_empty_store(store_url, url) as graph:
        yield graph


@pytest.fixture
async def lost_anywhere(store_url: str, archive_url: str) -> AsyncIterator[Graph]:
    """Open a graph whose store can be lost, with each kind of archive."""
    async with on_an_empty_store(store_url, archive_url) as graph:
        yield graph


async def test_the_rebuilt_store_equals_the_lost_one_key_by_key(lost_anywhere: Graph, store_url: str) -> None:
    await populate(lost_anywhere)
    before = await content(store_url)
    await empty_store(store_url)

    report = await Rebuild(lost_anywhere.store, lost_anywhere.archive, SMALL).run()

    assert await content(store_url) == before
    assert {key.partition(":")[0] for key in before} >= {"user", "login", "following", "followers", "posts", "post"}
    assert {key.partition(":")[0] for key in before} >= {"cold", "delivery"}
    assert (report.users, report.follows, report.posts, report.damaged) == (5, 4, 11, 0)


async def test_the_rebuilt_store_goes_on_where_the_archive_ends(lost: Graph, store_url: str, url: str) -> None:
    users = await populate(lost)
    last = await lost.log.last()
    homes = [await home(lost, user) for user in users]
    await empty_store(store_url)
    await Rebuild(lost.store, lost.archive, SMALL).run()

    graph = await opened(store_url, url)
    try:
        assert await graph.log.last() == await graph.log.watermark() == await graph.log.trimmed() == last
        assert int(await graph.store.run("GET", keys.ARCHIVED)) == last
        assert [await home(graph, user) for user in users] == homes
        assert (await graph.users.check_password("alice", PASSWORD)).id == users[0]
        [new] = await posts(graph, users[0], "after the rebuild")
        assert new > last
        await archive_all(graph)
        assert (await own(graph, users[0]))[0] == new
        assert (await graph.archive.state()).watermark == new
    finally:
        await graph.close()


async def test_repeated_requests_publish_nothing_after_a_rebuild(lost: Graph, store_url: str) -> None:
    """A client that lost the former store's reply gets the post that the archive had."""
    author, *_ = await populate(lost)
    post = await lost.posts.publish(author, "once", idempotency_key="key")
    await archive_all(lost)
    await empty_store(store_url)
    await Rebuild(lost.store, lost.archive, SMALL).run()

    again = await lost.posts.publish(author, "once", idempotency_key="key")

    assert again.id == post.id
    assert (await lost.posts.publish(author, "once", idempotency_key="another key")).id != post.id


async def test_repeated_requests_create_no_list_after_a_rebuild(lost: Graph, store_url: str) -> None:
    """Repeated requests do not restore a deleted list either."""
    owner, *_ = await populate(lost)
    kept, deleted = [await lost.lists.create(owner, name, idempotency_key=name) for name in ("kept", "deleted")]
    await lost.lists.delete(owner, deleted.id)
    await archive_all(lost)
    await empty_store(store_url)
    await Rebuild(lost.store, lost.archive, SMALL).run()

    assert await lost.lists.create(owner, "kept", idempotency_key="kept") == kept
    with pytest.raises(Rejected) as rejected:
        await lost.lists.create(owner, "deleted", idempotency_key="deleted")
    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]


async def test_repeated_sign_ups_get_their_account_after_a_rebuild(lost: Graph, store_url: str) -> None:
    """The archive keeps the nonce of the login, so another name is still refused."""
    await populate(lost)
    first = await lost.sign_ups.sign_up("zoe", PASSWORD, "Zoe", idempotency_key="key")
    await archive_all(lost)
    await empty_store(store_url)
    await Rebuild(lost.store, lost.archive, SMALL).run()

    again = await lost.sign_ups.sign_up("zoe", PASSWORD, "Zoe", idempotency_key="key")
    assert (again.user, again.is_new) == (first.user, False)
    with pytest.raises(Rejected) as rejected:
        await lost.sign_ups.sign_up("zoe", PASSWORD, "Z.", idempotency_key="key")
    assert codes(rejected.value) == [ProblemCode.IDEMPOTENCY_MISMATCH]


async def test_a_repetition_with_another_text_does_not_change_the_post(lost: Graph, store_url: str) -> None:
    """The rebuilt store does not know what the request was. The answer is the post as it was published."""
    author, *_ = await populate(lost)
    post = await lost.posts.publish(author, "once", idempotency_key="key")
    await archive_all(lost)
    await empty_store(store_url)
    await Rebuild(lost.store, lost.archive, SMALL).run()

    again = await lost.posts.publish(author, "another text", idempotency_key="key")

    assert (again.id, again.text) == (post.id, "once")
    assert [each.text for each in await lost.posts.get_many(SYSTEM, [post.id]) if each] == ["once"]


async def test_deleted_users_stay_deleted(lost: Graph, store_url: str) -> None:
    """A deletion holds even if it came before the sign-up was archived. The logins stay reserved."""
    alice, *_, erin = await populate(lost)
    [late] = await people(lost, "late")
    logins = {alice: "alice", erin: "erin", late: "late"}
    await lost.commit([UserDeleted(user, login_hash(login)) for user, login in logins.items()])
    await lost.commit([UserErased(erin)], erasing=True)
    await archive_all(lost)
    before = await content(store_url)
    await empty_store(store_url)

    report = await Rebuild(lost.store, lost.archive, SMALL).run()

    assert await content(store_url) == before
    assert {key for key in before if key.startswith("reserved:")} == {
        keys.reserved(login_hash(login)) for login in logins.values()
    }
    assert (set(before[keys.DELETED]), set(before[keys.ERASING])) == (set(map(str, logins)), {str(alice), str(late)})
    assert report.users == 6
    with pytest.raises(AccountDeleted):
        await lost.commit([PostPublished(late, "hi")])


async def test_few_rows_and_users_at_a_time_give_the_same_store(lost: Graph, store_url: str) -> None:
    """Every user then has many events: follows and followers are read in pages of two."""
    await populate(lost)
    before = await content(store_url)
    for users, rows in ((1, 2), (2, 3), (5, 7)):
        await empty_store(store_url)
        report = await Rebuild(lost.store, lost.archive, SMALL, users=users, rows=rows).run()
        assert await content(store_url) == before
        assert (report.users, report.follows, report.posts) == (5, 4, 11)


async def test_old_posts_and_old_tombstones_stay_in_the_archive(lost: Graph, store_url: str) -> None:
    """Only the newest few of the posts outside the hot window return."""
    alice, *_ = await populate(lost)
    timeline = await own(lost, alice)
    await empty_store(store_url)
    old = replace(SMALL, hot_age=timedelta(0), tombstones_live=timedelta(0))

    await Rebuild(lost.store, lost.archive, old).run()

    found = await content(store_url)
    assert set(found[keys.posts(alice)]) == {"f", *map(str, timeline[:2])}
    assert found[keys.posts(alice)]["f"] == timeline[2]
    assert int(found[keys.cold(alice)]) == len(timeline) - 2
    assert not [key for key, value in found.items() if key.endswith(":gone") or "deleted" in value]


async def test_progress_counts_users(lost: Graph, store_url: str) -> None:
    await populate(lost)
    await empty_store(store_url)
    steps: list[tuple[int, int]] = []
    await Rebuild(lost.store, lost.archive, SMALL, users=2).run(lambda done, total: steps.append((done, total)))
    assert steps == [(0, 5), (2, 5), (4, 5), (5, 5)]
