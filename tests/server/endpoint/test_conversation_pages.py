"""Bad pages, searches and filters of conversations, over HTTP and over a WebSocket: the answers agree."""

from typing import Any

import pytest

from graph.paging import CursorKind, encode_cursor
from tests.server.endpoint.conversation_stage import Stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEARCH = "searchPosts(filter: $given) { liveCursor posts(first: 2) { nodes { text } } }"
PAGES = {
    "publicTimeline { entries(%s) { nodes { id } } }": CursorKind.POST,
    "viewer { user { followersYouKnow(%s) { nodes { id } } } }": CursorKind.FOLLOW,
    "viewer { notifications { entries(%s) { nodes { id } } } }": CursorKind.NOTIFICATION,
    "viewer { notifications { entries(%s, kinds: [LIKE]) { nodes { id } } } }": CursorKind.NOTIFICATION,
    "viewer { likedPosts(%s) { nodes { id } } }": CursorKind.LIKE,
    "viewer { bookmarks(%s) { nodes { id } } }": CursorKind.BOOKMARK,
    "viewer { mutedUsers(%s) { nodes { id } } }": CursorKind.USER,
    "viewer { blockedUsers(%s) { nodes { id } } }": CursorKind.USER,
    'searchUsers(text: "a", %s) { nodes { id } }': CursorKind.USER,
    'node(id: "#alice\'s list") { ... on UserList { members(%s) { nodes { id } } } }': CursorKind.USER,
    'node(id: "#alice\'s list") { ... on UserList { timeline { entries(%s) { nodes { id } } } } }': CursorKind.POST,
    'post(id: "#bob\'s post") { likes(%s) { nodes { id } } }': CursorKind.LIKE,
    'post(id: "#bob\'s post") { replies(%s) { nodes { id } } }': CursorKind.POST,
    'post(id: "#bob\'s post") { reposts(%s) { nodes { id } } }': CursorKind.POST,
}
"""Connections of conversations, and the kinds of their cursors."""
BAD_PAGES = (
    "",
    "first: 0",
    "first: -1",
    "last: 101",
    "first: 1, last: 1",
    'first: 1, after: "x"',
    "first: 1, after: $",
)


@pytest.mark.parametrize("paging", BAD_PAGES)
@pytest.mark.parametrize("document", PAGES)
async def test_bad_pages(stage: Stage, document: str, paging: str) -> None:
    """Sizes must be from 1 to 100, from one end only, and cursors must be from the same list."""
    other = CursorKind.POST if PAGES[document] is not CursorKind.POST else CursorKind.USER
    paging = paging.replace("$", f'"{encode_cursor(other, 1)}"')
    for name in ("bob's post", "alice's list"):
        document = document.replace(f"#{name}", stage.ids[name])
    answer = await stage.ask(f"{{ {document % paging} }}".replace("()", ""))
    assert {each["extensions"]["code"] for each in answer["errors"]} == {"BAD_USER_INPUT"}


async def test_a_page_of_no_kinds(stage: Stage) -> None:
    """An empty list of kinds is refused. Clients omit the argument to get all kinds."""
    document = """query ($kinds: [NotificationKind!]) { viewer { notifications {
        entries(first: 1, kinds: $kinds) { nodes { id } } } } }"""
    answer = await stage.ask(document, kinds=[])
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]
    for omitted in ({}, {"kinds": None}, {"kinds": "FOLLOW"}):
        nodes = (await stage.ask(document, **omitted))["data"]["viewer"]["notifications"]["entries"]["nodes"]
        assert len(nodes) == 1, "Bob follows Alice"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"users": []},
        {"users": ["#bob"] * 101},
        {"users": ["#bob", "nonsense"]},
        {"users": ["#bob's post"]},
        {"keywords": []},
        {"keywords": ["x"] * 21},
        {"keywords": [""]},
        {"keywords": ["?!"]},
        {"keywords": ["x" * 61]},
        {"keywords": [" ".join(f"a{n}" for n in range(26))]},
        {"within": {"south": -91, "west": 0, "north": 0, "east": 0}},
        {"within": {"south": 1, "west": 0, "north": 0, "east": 0}},
    ],
)
async def test_bad_filters(stage: Stage, given: dict[str, Any]) -> None:
    """Filters are those of post searches."""
    answer = await stage.ask(f"query ($given: PostFilter!) {{ {SEARCH} }}", None, given=given)
    assert [(each["path"], each["extensions"]["code"]) for each in answer["errors"]] == [
        (["searchPosts"], "BAD_USER_INPUT")
    ]


@pytest.mark.parametrize("text", ["", " ", "?!", "x" * 51])
async def test_bad_searches_of_users(stage: Stage, text: str) -> None:
    document = "query ($text: String!) { searchUsers(text: $text, first: 1) { nodes { id } } }"
    answer = await stage.ask(document, None, text=text)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]


@pytest.mark.parametrize("limit", [0, 11, -1])
async def test_bad_numbers_of_actors(stage: Stage, limit: int) -> None:
    """The viewer has a notification, so the limit is checked."""
    document = """query ($n: Int!) { viewer { notifications {
        entries(first: 1) { nodes { actors(limit: $n) { id } } } } } }"""
    answer = await stage.ask(document, n=limit)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]


@pytest.mark.parametrize("limit", [0, 21, -1])
async def test_bad_numbers_of_ancestors(stage: Stage, limit: int) -> None:
    document = "query ($post: ID!, $n: Int!) { post(id: $post) { ancestors(limit: $n) { id } } }"
    answer = await stage.ask(document, post="#bob's post", n=limit)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]


HIDDEN_REPOSTS = (
    "no repost",
    "a repost of a deleted post",
    "a repost of eve's post",
    "a repost of carol's post",
    "a repost of dave's post",
    "an undone repost",
)
"""Reposts that Alice does not see, since she does not see the post, or that are no more."""


async def test_reads_do_not_tell_hidden_from_absent(stage: Stage) -> None:
    """Posts, reposts and profiles of hidden users, and searches for them, look like those that do not exist."""
    document = "query ($given: ID!) { post(id: $given) { id } node(id: $given) { id } nodes(ids: [$given]) { id } }"
    posts = ("no post", "a future post", "a deleted post", "eve's post", "carol's post", *HIDDEN_REPOSTS)
    answers = [await stage.ask(document, given=f"#{post}") for post in posts]
    assert answers == [{"data": {"post": None, "node": None, "nodes": [None]}}] * len(posts)
    document = f"query ($given: PostFilter!) {{ {SEARCH} }}"
    found = [await stage.ask(document, given={"users": [f"#{user}"]}) for user in ("nobody", "eve", "carol", "dave")]
    assert [each["data"]["searchPosts"]["posts"] for each in found] == [{"nodes": []}] * 4
    document = "query ($given: ID!) { user(by: {id: $given}) { id } node(id: $given) { id } }"
    profiles = [await stage.ask(document, given=f"#{user}") for user in ("nobody", "a future user", "eve")]
    assert profiles == [{"data": {"user": None, "node": None}}] * 3
    document = "query ($text: String!) { searchUsers(text: $text, first: 1) { nodes { id } } }"
    users = [await stage.ask(document, text=text) for text in ("zoe", "eve")]
    assert users == [{"data": {"searchUsers": {"nodes": []}}}] * 2


LISTS = {
    "viewer { homeTimeline { %s } }": "entries",
    "viewer { notifications { %s } }": "entries",
    "publicTimeline { %s }": "entries",
    'searchPosts(filter: {keywords: ["by"]}) { %s }': "posts",
    'node(id: "#alice\'s list") { ... on UserList { timeline { %s } } }': "entries",
}
"""Lists with a live cursor, and their pages."""


@pytest.mark.parametrize("list_", LISTS)
async def test_pages_that_begin_at_a_cursor_have_no_live_cursor(stage: Stage, list_: str) -> None:
    """One document can therefore serve all pages, and a client keeps the cursor that it has."""
    page, list_ = LISTS[list_], list_.replace("#alice's list", stage.ids["alice's list"])
    kind = CursorKind.NOTIFICATION if "notifications" in list_ else CursorKind.POST
    cursor = f'"{encode_cursor(kind, 1)}"'
    given = {
        "first: 1": True,
        "last: 1": True,
        "first: 1, after: null, before: null": True,
        f"first: 1, after: {cursor}": False,
        f"last: 1, before: {cursor}": False,
        f"first: 1, before: {cursor}": False,
    }
    for arguments, begins in given.items():
        fields = f"liveCursor({arguments}) {page}({arguments}) {{ pageInfo {{ endCursor }} }}"
        value: Any = (await stage.ask(f"{{ {list_ % fields} }}"))["data"]
        while "liveCursor" not in value:
            [value] = value.values()
        assert (value["liveCursor"] is not None) is begins, arguments
        assert value[page] is not None
