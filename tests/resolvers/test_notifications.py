"""Notifications through the schema: the feed, its pages, nodes, marks, errors, and what they cost."""

from itertools import product
from typing import Any

import pytest

from executor import Executor
from graph.log.events import PostPublished
from graph.model import MAX_NUMBER, User
from graph.paging import CursorKind, encode_cursor
from resolvers import ids
from schema import schema
from tests.resolvers.conftest import World, post_id
from tests.resolvers.test_round_trips import ask_breadth_first

PAGE = """query ($first: Int, $after: String, $last: Int, $before: String, $kinds: [NotificationKind!]) {
    viewer { notifications { id unreadCount hasMoreUnread
    liveCursor(first: $first, after: $after, last: $last, before: $before, kinds: $kinds)
    entries(first: $first, after: $after, last: $last, before: $before, kinds: $kinds) {
        edges { cursor node { __typename id at isRead actorsCount
            actors { id login followersCount relationship { state } }
            ... on PostNotification { post { id text author { login relationship { state } } } } } }
        pageInfo { hasNextPage hasPreviousPage endCursor }
} } } }"""
MARK = """mutation ($upTo: String!) { markNotificationsRead(input: {upTo: $upTo}) {
    notifications { id unreadCount } userErrors { code field } } }"""


async def mention(world: World, author: User, *users: User) -> int:
    """Publish a post that mentions users, and return its id."""
    body = PostPublished(author.id, "hello", mentions=tuple(user.id for user in users))
    [event] = await world.graph.commit([body])
    return event.number


async def test_a_page_of_notifications(world: World) -> None:
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(alice, bob)
    await world.follow(bob, alice)
    await world.follow(carol, alice)
    post = await mention(world, bob, alice)
    answer = await world.ask(PAGE, alice, first=10)
    assert answer.errors == []
    feed = answer.data["viewer"]["notifications"]
    assert feed["unreadCount"] == 2
    mentioned, followed = [edge["node"] for edge in feed["entries"]["edges"]]
    assert (mentioned["__typename"], mentioned["actorsCount"], mentioned["isRead"]) == ("MentionNotification", 1, False)
    assert mentioned["post"]["author"] == {"login": "bob", "relationship": {"state": "MUTUAL"}}
    assert (followed["__typename"], followed["actorsCount"], "post" in followed) == ("FollowNotification", 2, False)
    assert [user["login"] for user in followed["actors"]] == ["carol", "bob"]
    page = feed["entries"]["pageInfo"]
    assert (page["hasNextPage"], page["hasPreviousPage"]) == (False, False)
    assert feed["entries"]["edges"][0]["cursor"] == encode_cursor(CursorKind.NOTIFICATION, post)


async def test_the_number_of_actors_is_an_argument(world: World) -> None:
    alice, *fans = await world.users("alice", *(f"user_{n}" for n in range(12)))
    for fan in fans:
        await world.follow(fan, alice)
    document = (
        "query ($n: Int!) { viewer { notifications { entries(first: 1) { nodes { actors(limit: $n) { login } } } } } }"
    )
    for count in (1, 3, 10):
        answer = await world.ask(document, alice, n=count)
        [node] = answer.data["viewer"]["notifications"]["entries"]["nodes"]
        assert [user["login"] for user in node["actors"]] == [fan.login for fan in fans[: -count - 1 : -1]]
    for count in (0, -1, 11):
        refused = await world.ask(document, alice, n=count)
        assert refused.data["viewer"]["notifications"]["entries"] is None
        assert refused.errors == [(("viewer", "notifications", "entries", "nodes", 0, "actors"), "BAD_USER_INPUT")]


@pytest.mark.parametrize("reposts", [False, True], ids=["no reposts", "reposts"])
async def test_a_page_breadth_first_takes_four_trips(world: World, reposts: bool) -> None:
    """This includes users, posts, authors, the unread count and the session check, for any page size.

    The counts and relationships of the users who act add none.
    """
    alice, *others = await world.users("alice", *(f"user_{n}" for n in range(10)))
    for other in others:
        await world.follow(other, alice)
    for n in range(75):
        await mention(world, others[n % len(others)], alice)
    for post in await world.post(alice, *map(str, range(30))):
        await world.graph.likes.like(others[0].id, post.id)
        if reposts:
            await world.graph.reposts.repost(world.graph.visibility.of(others[1].id), others[1].id, post.id)
    executor = Executor(schema._schema)
    for first, details in product((1, 30, 100), ("", "followersCount relationship { state }")):
        document = PAGE.replace("followersCount relationship { state }", details, 1)
        expected = await world.ask(document, alice, first=first)

        answer = await ask_breadth_first(executor, world, document, alice, first=first)

        assert answer.errors == []
        assert answer.data == expected.data
        assert len(answer.data["viewer"]["notifications"]["entries"]["edges"]) == first
        assert answer.data["viewer"]["notifications"]["unreadCount"] == 100
        assert answer.round_trips <= 4
        assert executor.fallen_back == 0


async def test_pages_of_some_kinds(world: World) -> None:
    """Cursors continue the list even if notifications of other kinds are in between."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    first = await mention(world, bob, alice)
    await world.follow(bob, alice)
    [post] = await world.post(alice, "mine")
    await world.graph.likes.like(bob.id, post.id)
    second = await mention(world, carol, alice)

    async def shown(**arguments: object) -> tuple[list[str], str | None]:
        found = (await world.ask(PAGE, alice, **arguments)).data["viewer"]["notifications"]["entries"]
        return [each["node"]["__typename"] for each in found["edges"]], found["pageInfo"]["endCursor"]

    assert (await shown(first=9, kinds=["LIKE", "FOLLOW"]))[0] == ["LikeNotification", "FollowNotification"]
    one, end = await shown(first=1, kinds=["MENTION"])
    assert (one, end) == (["MentionNotification"], encode_cursor(CursorKind.NOTIFICATION, second))
    assert await shown(first=9, after=end, kinds=["MENTION"]) == (one, encode_cursor(CursorKind.NOTIFICATION, first))
    assert await shown(last=9, before=end, kinds=["MENTION"]) == ([], None)
    assert len((await shown(first=9, kinds=None))[0]) == 4


async def test_the_live_cursor_belongs_to_the_first_page(world: World) -> None:
    """It is null if a cursor is given. The unread count ends at 100, and a flag shows if there are more."""
    alice, bob = await world.users("alice", "bob")
    posts = [await mention(world, bob, alice) for _ in range(100)]
    cursor = encode_cursor(CursorKind.NOTIFICATION, posts[5])
    windows = ({"first": 1}, {"last": 1}, {"first": 1, "after": cursor}, {"last": 1, "before": cursor})
    feeds = [(await world.ask(PAGE, alice, **window)).data["viewer"]["notifications"] for window in windows]
    assert [feed["liveCursor"] is not None for feed in feeds] == [True, True, False, False]
    assert (feeds[0]["unreadCount"], feeds[0]["hasMoreUnread"]) == (100, False)
    await mention(world, bob, alice)
    more = (await world.ask(PAGE, alice, first=1)).data["viewer"]["notifications"]
    assert (more["unreadCount"], more["hasMoreUnread"]) == (100, True)


async def test_pages_continue_after_a_cursor(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    posts = [await mention(world, bob, alice) for _ in range(5)]
    first = (await world.ask(PAGE, alice, first=2)).data["viewer"]["notifications"]["entries"]
    answer = await world.ask(PAGE, alice, first=9, after=first["pageInfo"]["endCursor"])
    rest = answer.data["viewer"]["notifications"]["entries"]
    shown = [edge["node"]["post"]["id"] for edge in first["edges"] + rest["edges"]]
    assert shown == [ids.encode(ids.Kind.POST, post) for post in posts[::-1]]
    assert (first["pageInfo"]["hasNextPage"], rest["pageInfo"]["hasPreviousPage"]) == (True, True)
    last = (await world.ask(PAGE, alice, last=2)).data["viewer"]["notifications"]["entries"]
    assert last["edges"] == rest["edges"][-2:]


@pytest.mark.parametrize(
    "arguments",
    [
        *({}, {"first": 0}, {"first": 101}, {"first": 1, "last": 1}),
        *({"first": 1, "after": "post-00000000000001"}, {"first": 1, "kinds": []}),
    ],
)
async def test_invalid_pages(world: World, arguments: dict[str, Any]) -> None:
    [alice] = await world.users("alice")
    answer = await world.ask(PAGE, alice, **arguments)
    assert answer.errors == [(("viewer", "notifications", "entries"), "BAD_USER_INPUT")]
    assert answer.data["viewer"]["notifications"]["unreadCount"] == 0


async def test_nobody_has_no_notifications(world: World) -> None:
    answer = await world.ask(PAGE, None, first=1)
    assert (answer.data, answer.errors) == ({"viewer": None}, [])
    assert answer.round_trips == 0


async def test_notifications_are_marked_as_read(world: World) -> None:
    """They are marked up to the cursor of an edge or of a live event. An older cursor changes nothing."""
    alice, bob = await world.users("alice", "bob")
    first, second, third = [await mention(world, bob, alice) for _ in range(3)]
    feed = ids.encode(ids.Kind.NOTIFICATION_FEED, alice.id)
    for kind, up_to, left in (
        (CursorKind.NOTIFICATION, second, 1),
        (CursorKind.NOTIFICATION, first, 1),
        (CursorKind.LOG, third, 0),
        (CursorKind.LOG, MAX_NUMBER, 0),
    ):
        answer = await world.ask(MARK, alice, upTo=encode_cursor(kind, up_to))
        assert answer.data["markNotificationsRead"] == {
            "notifications": {"id": feed, "unreadCount": left},
            "userErrors": [],
        }


@pytest.mark.parametrize("cursor", ["", "x", "log-", "post-00000000000001", "notification-1", "log-20000000000000"])
async def test_an_invalid_cursor_marks_nothing(world: World, cursor: str) -> None:
    alice, bob = await world.users("alice", "bob")
    await mention(world, bob, alice)
    last = await world.graph.log.last()
    answer = await world.ask(MARK, alice, upTo=cursor)
    error = {"code": "INVALID", "field": ["upTo"]}
    assert answer.data["markNotificationsRead"] == {"notifications": None, "userErrors": [error]}
    assert await world.graph.log.last() == last


async def test_marking_requires_a_viewer(world: World) -> None:
    answer = await world.ask(MARK, None, upTo=encode_cursor(CursorKind.LOG, 1))
    assert answer.errors == [(("markNotificationsRead",), "UNAUTHENTICATED")]


async def test_nodes_are_the_viewers_own(world: World) -> None:
    """A notification of another user, or one that no longer exists, is null."""
    alice, bob = await world.users("alice", "bob")
    post = await mention(world, bob, alice)
    feed = ids.encode(ids.Kind.NOTIFICATION_FEED, alice.id)
    mine = ids.encode(ids.Kind.NOTIFICATION, alice.id, 3, post)
    others = [
        ids.encode(ids.Kind.NOTIFICATION, alice.id, *numbers) for numbers in ((2, post), (3, post + 1), (9, post))
    ]
    document = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Notification { isRead } } }"
    shown = [
        {"__typename": "NotificationFeed", "id": feed},
        {"__typename": "MentionNotification", "id": mine, "isRead": False},
        *[None] * 3,
    ]
    assert (await world.ask(document, alice, ids=[feed, mine, *others])).data["nodes"] == shown
    for viewer in (bob, None):
        assert (await world.ask(document, viewer, ids=[feed, mine, *others])).data["nodes"] == [None] * 5
    await world.graph.posts.delete(bob.id, post)
    assert (await world.ask(document, alice, ids=[mine])).data["nodes"] == [None]


async def test_the_posts_of_a_page_are_not_looked_up_again(world: World) -> None:
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "hello")
    await world.graph.commit([PostPublished(bob.id, "again", mentions=(alice.id,))])
    both = """query ($id: ID!) { post(id: $id) { text } viewer { notifications { entries(first: 1) { nodes {
        ... on MentionNotification { post { text } } } } } } }"""
    answer = await world.ask(both, alice, id=post_id(post))
    assert answer.data["viewer"]["notifications"]["entries"]["nodes"] == [{"post": {"text": "again"}}]
