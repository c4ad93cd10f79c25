"""Suspensions of users, removals of posts, and reports."""

import asyncio

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ProblemCode, Rejected
from graph.log.events import Event, EventBody, PostDeleted
from graph.log.moderation_events import Reported, UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted
from graph.model import FollowRefusal, ReportReason
from graph.moderation import Report
from graph.paging import Window
from graph.people.known_followers import KnownFollowers, known_followers
from graph.post_lists import REPLIED, REPLIES, REPOSTS
from graph.projections.mode import Mode
from graph.search.post_search import post_filter
from graph.visibility.views import SYSTEM
from tests.support.graph_worlds import (
    PASSWORD,
    Open,
    append_events,
    archive_log,
    befriend,
    codes,
    counted,
    home,
    newest,
    people,
    posts,
)
from tests.support.stores import Stop, runs

SPAM = ReportReason.SPAM


async def hidden(graph: Graph, viewer: int | None, *users: int) -> set[int]:
    """Return the given users who are hidden from a viewer in a new request."""
    return set(await graph.visibility.of(viewer).hidden(users))


async def test_a_suspended_user_is_hidden_from_everybody_at_once(graph: Graph, another: Open) -> None:
    """The user is hidden even in processes that have already shown the user. The suspension takes 3 round trips."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    other = await another()
    for process in (graph, other):
        assert not await hidden(process, alice, bob, carol)

    async with counted(graph) as cost:
        assert await graph.moderation.suspend(bob)

    assert cost.round_trips == 3
    for process in (graph, other):
        for viewer in (alice, bob, None):
            view = process.visibility.of(viewer)
            assert await view.hidden([alice, bob, carol]) == {bob}
            assert await view.silenced([alice, bob, carol]) == {bob}
            assert [user and user.id for user in await process.users.visible(view, [alice, bob])] == [alice, None]
        assert not await SYSTEM.hidden([bob])
    assert not await graph.moderation.suspend(bob)
    assert await graph.moderation.unsuspend(bob)
    for process in (graph, other):
        assert not await hidden(process, alice, bob)
    assert not await graph.moderation.unsuspend(bob)


async def test_suspensions_take_no_round_trip(graph: Graph) -> None:
    """They arrive with the other reads of a page, in one command, even right after a change."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    for change in (graph.moderation.suspend, graph.moderation.unsuspend):
        await change(bob)
        for _ in range(2):
            async with counted(graph) as cost:
                await graph.posts.get_many(graph.visibility.of(None), [post])
                await graph.users.visible(graph.visibility.of(None), [alice, bob])
            assert (cost.round_trips, cost.commands) == (2, 5)


async def test_everything_of_a_suspended_user_is_hidden(graph: Graph) -> None:
    """Posts, lists, likes, reposts, threads, search results and follows both ways are hidden. Counts do not change."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    await befriend(graph, alice, bob, carol)
    await befriend(graph, carol, bob)
    await befriend(graph, bob, alice)
    [by_bob, quoted] = await posts(graph, bob, "a secret", "quoted")
    [by_carol] = await posts(graph, carol, "by carol")
    reply = await graph.posts.publish(bob, "a reply", reply_to=by_carol)
    quote = await graph.posts.publish(carol, "look", quote_of=quoted)
    await graph.likes.like(bob, by_carol)
    await graph.likes.like(alice, by_bob)
    for user in (alice, bob):
        view = graph.visibility.of(user)
        await graph.reposts.repost(view, user, by_carol)
    await graph.reposts.repost(graph.visibility.of(carol), carol, by_bob)
    await graph.worker().drain()
    await archive_log(graph)
    before = await home(graph, alice)

    await graph.moderation.suspend(bob)

    view = graph.visibility.of(alice)
    assert await home(graph, alice) == [
        post for post in before if post in {by_carol, quote.id, *await own_ids(graph, alice)}
    ]
    assert [post and post.id for post in await graph.posts.get_many(view, [by_bob, reply.id, quote.id])] == [
        None,
        None,
        quote.id,
    ]
    [timeline] = await graph.timelines.user(view, [bob], newest(9))
    [replied] = await graph.timelines.pages_of(view, REPLIED, [bob], newest(9))
    [replies] = await graph.timelines.pages_of(view, REPLIES, [by_carol], newest(9))
    [reposts] = await graph.timelines.pages_of(view, REPOSTS, [by_carol], newest(9))
    assert (timeline.items, replied.items, replies.items) == ((), (), ())
    assert [post.author for post in reposts.items] == [alice]
    [likes] = await graph.likes.pages.of_posts(view, [by_carol], newest(9))
    liked = await graph.likes.pages.of_user(view, alice, newest(9))
    assert (likes.items, liked.items) == ((), ())
    search = await graph.searches.begin(post_filter(keywords=["secret"]))
    assert len((await graph.searches.posts(SYSTEM, search, newest(9))).items) == 1
    found = await graph.searches.posts(view, search, newest(9))
    assert found.items == ()
    [followers] = await graph.follows.followers(view, [alice], newest(9))
    [of_bob, following] = await graph.follows.following(view, [bob, alice], newest(9))
    assert (followers.items, of_bob.items, [each.user for each in following.items]) == ((), (), [carol])
    known = await known_followers(graph.store, alice, [alice], Window(9, True), view)
    assert known == [KnownFollowers(Window(9, True).page([]), 0)]
    [post] = await graph.posts.get_many(view, [by_carol])
    assert post is not None
    assert (post.likes, post.replies, post.reposts) == (1, 1, 2)

    await graph.moderation.unsuspend(bob)

    assert await home(graph, alice) == before


async def own_ids(graph: Graph, user: int) -> list[int]:
    """Return the ids in a user's own timeline."""
    [page] = await graph.timelines.user(SYSTEM, [user], newest(50))
    return [post.id for post in page.items]


async def test_nothing_can_be_done_with_what_is_hidden(graph: Graph) -> None:
    """Actions fail with NOT_FOUND, as for absent posts and users. A mention is plain text."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "hi")
    await graph.moderation.suspend(bob)
    view = graph.visibility.of(alice)

    for refused in (
        graph.posts.publish(alice, "re", reply_to=post),
        graph.posts.publish(alice, "look", quote_of=post),
        graph.likes.like(alice, post),
        graph.reposts.repost(view, alice, post),
        graph.posts.delete(alice, post),
        graph.moderation.report_user(view, alice, bob, SPAM),
        graph.moderation.report_post(view, alice, post, SPAM),
    ):
        with pytest.raises(Rejected) as rejected:
            await refused
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert await graph.follows.follow(alice, [bob]) == [FollowRefusal.NOT_FOUND]
    assert (await graph.posts.publish(alice, "@bob")).mentions == ()


async def test_a_suspension_ends_all_sessions_and_refuses_log_ins(graph: Graph) -> None:
    """A wrong password is refused as usual. Afterwards the user can log in again; earlier sessions stay ended."""
    [bob] = await people(graph, "bob")
    sessions = [await graph.sessions.start(bob) for _ in range(2)]

    await graph.moderation.suspend(bob)

    assert await graph.sessions.are_live([(bob, session.id) for session in sessions]) == [False, False]
    with pytest.raises(Rejected) as rejected:
        await graph.sessions.start(bob)
    assert codes(rejected.value) == [ProblemCode.NOT_ALLOWED]
    with pytest.raises(Rejected) as rejected:
        await graph.users.check_password("bob", "a wrong password")
    assert codes(rejected.value) == [ProblemCode.WRONG_CREDENTIALS]
    await graph.moderation.unsuspend(bob)
    assert await graph.sessions.are_live([(bob, session.id) for session in sessions]) == [False, False]
    assert (await graph.users.check_password("bob", PASSWORD)).id == bob
    later = await graph.sessions.start(bob)
    await graph.projections.project([Event(bob + 1, UserSuspended(bob))], Mode.WORKER)
    assert await graph.sessions.is_live(bob, later.id)


async def test_a_log_in_that_is_checked_before_a_suspension_starts_no_session(graph: Graph, another: Open) -> None:
    slow = await another()
    [bob] = await people(graph, "bob")
    stop = Stop(slow.store, runs("start_session"))
    starting = asyncio.create_task(slow.sessions.start(bob))
    await stop.reached.wait()

    await graph.moderation.suspend(bob)
    stop.resume()

    with pytest.raises(Rejected):
        await starting
    assert await graph.sessions.live_sessions(bob) == []


@pytest.mark.parametrize("last", [UserSuspended, UserUnsuspended])
async def test_in_any_order_the_last_event_counts(
    graph: Graph, raw: Redis, last: type[UserSuspended] | type[UserUnsuspended]
) -> None:
    """The last event counts in the user's slot and in the hash of all suspended users."""
    [bob] = await people(graph, "bob")
    bodies: list[EventBody] = [UserSuspended(bob), UserUnsuspended(bob), last(bob)]
    events = [Event(bob + 1 + n, body) for n, body in enumerate(bodies)]

    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0, 1]):
        await graph.projections.project([events[place] for place in order[:1]], Mode.WORKER)
        await graph.projections.project([events[place] for place in order[1:]], Mode.WORKER)
        number = str(events[2].number) if last is UserSuspended else str(-events[2].number)
        assert await raw.hget(keys.user(bob), "suspended") == await raw.hget(keys.SUSPENDED, str(bob)) == number
        assert await hidden(graph, None, bob) == ({bob} if last is UserSuspended else set())


async def test_an_unknown_user_is_not_suspended(graph: Graph, raw: Redis) -> None:
    for change in (graph.moderation.suspend, graph.moderation.unsuspend):
        with pytest.raises(Rejected) as rejected:
            await change(7)
        assert codes(rejected.value) == [ProblemCode.NOT_FOUND]
    assert [key async for key in raw.scan_iter()] == [keys.BINDING]


async def test_a_removed_post_is_gone_like_a_deleted_one(graph: Graph) -> None:
    """The event names the operator, and the text leaves the archive. Removing the post again changes nothing."""
    alice, bob = await people(graph, "alice", "bob")
    [post] = await posts(graph, bob, "words to remove")
    repost = await graph.reposts.repost(graph.visibility.of(alice), alice, post)
    await graph.worker().drain()
    await archive_log(graph)

    removed = await graph.moderation.remove(post)
    again = await graph.moderation.remove(post)
    await graph.worker().drain()
    await archive_log(graph)

    assert removed is not None
    assert (removed.id, again) == (post, None)
    assert await graph.posts.get_many(SYSTEM, [post, repost.id]) == [None, None]
    bodies = [event.body async for event in graph.log.replay(repost.id, await graph.log.last())]
    deletions = [body for body in bodies if isinstance(body, PostDeleted)]
    assert [(body.author, body.post, body.by_operator) for body in deletions] == [(bob, post, True)]
    [row] = await graph.archive.rows([post])
    assert (row.kind, row.body) == ("Redacted", None)
    with pytest.raises(Rejected) as rejected:
        await graph.moderation.remove(7)
    assert codes(rejected.value) == [ProblemCode.NOT_FOUND]


async def test_an_author_and_an_operator_delete_a_post_once(graph: Graph) -> None:
    """One deletion is appended even if neither of the two is projected when the other begins."""
    [bob] = await people(graph, "bob")
    [post] = await posts(graph, bob, "hi")

    await asyncio.gather(graph.moderation.remove(post), graph.posts.delete(bob, post))

    bodies = [event.body async for event in graph.log.replay(post, await graph.log.last())]
    assert [type(body) for body in bodies] == [PostDeleted]
    assert await graph.posts.get_many(SYSTEM, [post]) == [None]


async def open_reports(graph: Graph) -> list[Report]:
    """Return the open reports."""
    return [report async for report in graph.moderation.reports()]


async def test_reports_are_open_until_an_operator_closes_them(graph: Graph) -> None:
    """Archived or not, all reports of a subject are closed together, and later ones are open."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    [post] = await posts(graph, bob, "buy this")
    view = graph.visibility.of(alice)
    await graph.moderation.report_post(view, alice, post, SPAM, "  again \n")
    await graph.moderation.report_user(graph.visibility.of(carol), carol, bob, ReportReason.OTHER)
    await graph.moderation.report_post(graph.visibility.of(carol), carol, post, ReportReason.ABUSE)

    in_log = await open_reports(graph)
    await graph.worker().drain()
    await archive_log(graph)

    assert await open_reports(graph) == in_log
    assert [report[1:] for report in in_log] == [
        (alice, post, bob, "SPAM", "again"),
        (carol, bob, None, "OTHER", ""),
        (carol, post, bob, "ABUSE", ""),
    ]
    assert await graph.moderation.close([in_log[2].number, 7]) == [7]
    assert await open_reports(graph) == [in_log[1]]
    await graph.worker().drain()
    await archive_log(graph)
    assert await open_reports(graph) == [in_log[1]]
    [dave] = await people(graph, "dave")
    await graph.moderation.report_post(graph.visibility.of(dave), dave, post, SPAM)
    last = await graph.log.last()
    assert await graph.moderation.close([in_log[0].number]) == []
    assert [report.number for report in await open_reports(graph)] == [in_log[1].number, last]
    assert await graph.moderation.close([last, in_log[1].number]) == []
    assert await open_reports(graph) == []


async def test_reports_are_read_piece_by_piece(graph: Graph) -> None:
    """Reports are read in pieces, however many events are not archived."""
    alice, bob, carol = await people(graph, "alice", "bob", "carol")
    first, last = Reported(alice, bob, SPAM.value, ""), Reported(alice, carol, SPAM.value, "")
    await append_events(graph, [first, *[Muted(alice, bob)] * 600, last, Reported(carol, bob, SPAM.value, "")])
    reports = graph.moderation.reports()

    assert (await anext(reports)).subject == bob
    async with counted(graph) as cost:
        assert [report.subject async for report in reports] == [carol, bob]
    assert cost.round_trips >= 1


async def test_a_repeated_report_appends_nothing(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    view = graph.visibility.of(alice)
    await graph.moderation.report_user(view, alice, bob, SPAM)
    last = await graph.log.last()

    await graph.moderation.report_user(view, alice, bob, ReportReason.ABUSE, "and more")

    assert await graph.log.last() == last
    assert len(await open_reports(graph)) == 1


async def test_invalid_reports_write_nothing(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    view, last = graph.visibility.of(alice), await graph.log.last()
    for refused, code in (
        (graph.moderation.report_user(view, alice, alice, SPAM), ProblemCode.INVALID),
        (graph.moderation.report_user(view, alice, bob, SPAM, "x" * 1001), ProblemCode.INVALID),
        (graph.moderation.report_post(view, alice, 7, SPAM, "\ud800"), ProblemCode.INVALID),
        (graph.moderation.report_user(view, alice, 7, SPAM), ProblemCode.NOT_FOUND),
        (graph.moderation.report_post(view, alice, 7, SPAM), ProblemCode.NOT_FOUND),
    ):
        with pytest.raises(Rejected) as rejected:
            await refused
        assert codes(rejected.value) == [code]
    assert await graph.log.last() == last
