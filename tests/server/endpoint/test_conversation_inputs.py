"""Bad and repeated input of conversations, over HTTP and over a WebSocket: the answers agree, and nothing is written.

All tests share one server and one world, which only repeatable changes alter, each in a corner of its own.
"""

from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import pytest
import pytest_asyncio

from graph.paging import CursorKind, encode_cursor
from tests.server.endpoint.conversation_stage import HOST, IMAGE, PAYLOADS, Stage, document_of, on_stage

pytestmark = pytest.mark.asyncio(loop_scope="module")

Refusal: TypeAlias = tuple[str, dict[str, Any], list[dict[str, Any]]]
"""A mutation, its input, and its user errors."""

FAILED = {"reported": False}
"""Fields that are not null if a mutation fails."""
NO_POST = "This post does not exist."
NO_USER = "This user does not exist."
NO_SUBJECT = "This user or post does not exist."
NO_LIST = "This list does not exist."
NO_SESSION = "This session does not exist, or it has ended."
ACROSS = "You block this user, or this user blocks you."
MISSING_POSTS = (
    "nonsense", "", "x" * 101, "no post", "a future post", "a follow", "bob", "a deleted post", "eve's post",
    "a repost of a deleted post", "a repost of eve's post", "ivan's post",
)  # fmt: skip
MISSING_USERS = ("nonsense", "", "x" * 101, "nobody", "a future user", "bob's post", "eve", "ivan")
"""Eve is suspended, and Ivan has deleted his account."""
MISSING_LISTS = ("nonsense", "", "no list", "a deleted list", "bob's list", "bob", "the timeline of alice's list")
MISSING_SESSIONS = ("nonsense", "", "no session", "an ended session", "bob's session", "bob")
ACROSS_BLOCKS = ("carol's post", "dave's post", "a repost of carol's post")
"""Alice blocks Dave, and Carol blocks Alice."""


def problem(code: str, message: str | None, *field: str) -> dict[str, Any]:
    """Return a user error. A message of None may be any."""
    return {"code": code, "message": message, "field": list(field) or None}


NOT_FOUND_SUBJECT = problem("NOT_FOUND", NO_SUBJECT, "subjectId")


def missing_posts() -> list[Refusal]:
    """Return the mutations of a post that the viewer cannot see, or cannot act on."""
    found: list[Refusal] = []
    for post in (*MISSING_POSTS, *ACROSS_BLOCKS):
        gone = problem("NOT_FOUND", NO_POST, "postId")
        refused = problem("BLOCKED", ACROSS, "postId") if post in ACROSS_BLOCKS else gone
        found += [(mutation, {"postId": f"#{post}"}, [refused]) for mutation in ("likePost", "repost")]
        found += [(mutation, {"postId": f"#{post}"}, [gone]) for mutation in ("unlikePost", "unrepost")]
        for field in ("replyTo", "quoteOf"):
            found += [("publishPost", {"text": "hi", field: f"#{post}"}, [{**refused, "field": [field]}])]
        if post != "bob":
            found += [("report", {"subjectId": f"#{post}", "reason": "SPAM"}, [NOT_FOUND_SUBJECT])]
    for post in ("no post", "a future post", "eve's post", "ivan's post", "carol's post", "a deleted post"):
        found += [("deletePost", {"id": f"#{post}"}, [problem("NOT_FOUND", NO_POST, "id")])]
    return found


def missing_others() -> list[Refusal]:
    """Return the mutations of users, lists and sessions that the viewer cannot see."""
    found: list[Refusal] = []
    for user in MISSING_USERS:
        no_user = [problem("NOT_FOUND", NO_USER, "userId")]
        found += [(each, {"userId": f"#{user}"}, no_user) for each in ("mute", "unmute", "block", "unblock")]
        if user != "bob's post":
            found.append(("report", {"subjectId": f"#{user}", "reason": "ABUSE"}, [NOT_FOUND_SUBJECT]))
        some = ["#bob", f"#{user}"]
        found.append(("createList", {"name": "x", "userIds": some}, [problem("NOT_FOUND", NO_USER, "userIds", "1")]))
        added = [problem("NOT_FOUND", NO_USER, "addUserIds", "1")]
        found.append(("updateList", {"listId": "#alice's list", "addUserIds": some}, added))
    for each in MISSING_LISTS:
        no_list = [problem("NOT_FOUND", NO_LIST, "listId")]
        found.append(("updateList", {"listId": f"#{each}", "name": "x"}, no_list))
        found.append(("updateList", {"listId": f"#{each}", "addUserIds": ["#bob"]}, no_list))
        if each != "a deleted list":
            found.append(("deleteList", {"listId": f"#{each}"}, no_list))
    no_session = [problem("NOT_FOUND", NO_SESSION, "sessionId")]
    found += [("endSession", {"sessionId": f"#{each}"}, no_session) for each in MISSING_SESSIONS]
    return found


INVALID: list[Refusal] = [
    *((each, {"userId": "#alice"}, [problem("INVALID", None, "userId")]) for each in ("mute", "unmute")),
    *((each, {"userId": "#alice"}, [problem("INVALID", None, "userId")]) for each in ("block", "unblock")),
    ("report", {"subjectId": "#alice", "reason": "SPAM"}, [problem("INVALID", None, "subjectId")]),
    ("report", {"subjectId": "#bob", "reason": "SPAM", "comment": "x" * 1001}, [problem("INVALID", None, "comment")]),
    ("publishPost", {}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"text": " \n", "replyTo": "#bob's post"}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"quoteOf": "#bob's post", "attachments": []}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"text": "hi", "attachments": [IMAGE] * 5}, [problem("TOO_MANY", None, "attachments")]),
    (
        "publishPost",
        {"text": "hi", "replyTo": "#no post", "quoteOf": "#carol's post"},
        [problem("NOT_FOUND", NO_POST, "replyTo"), problem("BLOCKED", ACROSS, "quoteOf")],
    ),
    *(
        (
            "publishPost",
            {"attachments": [IMAGE, IMAGE | {name: url}]},
            [problem("INVALID", None, "attachments", "1", name)],
        )
        for name in ("url", "previewUrl")
        for url in ("https://evil.example/a", f"http://{HOST}/a", f"https://{HOST}:8443/a", f"https://a.{HOST}/", "")
    ),
    ("deleteAccount", {"password": "a guess"}, [problem("WRONG_CREDENTIALS", None, "password")]),
    ("deleteAccount", {"password": ""}, [problem("WRONG_CREDENTIALS", None, "password")]),
    ("createList", {"name": ""}, [problem("INVALID", None, "name")]),
    ("createList", {"name": "x" * 51}, [problem("INVALID", None, "name")]),
    ("createList", {"name": "x", "userIds": ["#bob"] * 101}, [problem("TOO_MANY", None, "userIds")]),
    ("updateList", {"listId": "#alice's list", "name": " "}, [problem("INVALID", None, "name")]),
    *(
        ("updateList", {"listId": "#alice's list", field: ["#bob"] * 101}, [problem("TOO_MANY", None, field)])
        for field in ("addUserIds", "removeUserIds")
    ),
    (
        "updateList",
        {"listId": "#alice's list", "addUserIds": ["#bob", "#nobody"], "removeUserIds": ["#frank", "#bob"]},
        [problem("NOT_FOUND", NO_USER, "addUserIds", "1"), problem("INVALID", None, "removeUserIds", "1")],
    ),
    ("updateList", {"listId": "#a full list", "addUserIds": ["#bob"]}, [problem("TOO_MANY", None, "addUserIds")]),
    *(
        ("markNotificationsRead", {"upTo": cursor}, [problem("INVALID", None, "upTo")])
        for cursor in ("", "x", "log-", "post-00000000000001", "notification-1", encode_cursor(CursorKind.POST, 1))
    ),
]
FIELDS = {
    "publishPost": "replyTo",
    "deletePost": "id",
    **dict.fromkeys(("likePost", "unlikePost", "repost", "unrepost", "bookmarkPost", "removeBookmark"), "postId"),
    **dict.fromkeys(("mute", "unmute", "block", "unblock"), "userId"),
    "report": "subjectId",
    "markNotificationsRead": "upTo",
    "createList": "name",
    **dict.fromkeys(("updateList", "deleteList"), "listId"),
    "endSession": "sessionId",
    "deleteAccount": "password",
}
"""A field of the input of each mutation, with which the input is complete."""
SEARCH = "searchPosts(filter: $given) { liveCursor posts(first: 2) { nodes { text } } }"
PAGES = {
    "publicTimeline { posts(%s) { nodes { id } } }": CursorKind.POST,
    "viewer { followersYouKnow(%s) { nodes { id } } }": CursorKind.FOLLOW,
    "notifications { entries(%s) { nodes { id } } }": CursorKind.NOTIFICATION,
    "likedPosts(%s) { nodes { id } }": CursorKind.LIKE,
    "bookmarks(%s) { nodes { id } }": CursorKind.BOOKMARK,
    "mutedUsers(%s) { nodes { id } }": CursorKind.USER,
    "blockedUsers(%s) { nodes { id } }": CursorKind.USER,
    'searchUsers(text: "a", %s) { nodes { id } }': CursorKind.USER,
    'node(id: "#alice\'s list") { ... on UserList { members(%s) { nodes { id } } } }': CursorKind.USER,
    'node(id: "#alice\'s list") { ... on UserList { timeline { posts(%s) { nodes { id } } } } }': CursorKind.POST,
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


REFUSALS = [*missing_posts(), *missing_others(), *INVALID]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """Serve one world for all tests."""
    async with on_stage(tmp_path_factory.mktemp("inputs")) as stage:
        yield stage


@pytest.mark.parametrize(
    ("mutation", "given", "problems"), REFUSALS, ids=[f"{mutation} {given}"[:70] for mutation, given, _ in REFUSALS]
)
async def test_bad_input(stage: Stage, mutation: str, given: dict[str, Any], problems: list[dict[str, Any]]) -> None:
    """Refused with the same errors for what is hidden as for what does not exist, and nothing is written."""
    last = await stage.graph.log.last()

    answer = await stage.change(mutation, **given)

    assert "errors" not in answer
    payload = answer["data"][mutation]
    errors = payload.pop("userErrors")
    assert set(payload.items()) == {(name, FAILED.get(name)) for name in payload}
    for expected, error in zip(problems, errors, strict=True):
        message = error["message"] if expected["message"] is None else expected["message"]
        assert {name: error[name] for name in expected} == {**expected, "message": message}
    assert await stage.graph.log.last() == last


@pytest.mark.parametrize(
    ("does", "undoes", "given"),
    [
        *(
            (*pair, {"postId": f"#{post}"})
            for pair in (("likePost", "unlikePost"), ("repost", "unrepost"))
            for post in ("bob's post", "frank's post", "a repost of bob's post")
        ),
        ("mute", "unmute", {"userId": "#bob"}),
        ("block", "unblock", {"userId": "#heidi"}),
    ],
)
async def test_repetitions(stage: Stage, does: str, undoes: str, given: dict[str, Any]) -> None:
    """Each has the same answer and writes nothing, also for the viewer's own posts."""
    for mutation in (does, undoes):
        before = await stage.graph.log.last()
        given = stage.resolved(given)
        first = (await stage.api.ask(document_of(mutation), stage.tokens["frank"], input=given)).json()
        assert first["data"][mutation]["userErrors"] == []
        last = await stage.graph.log.last()
        assert last > before
        again = await stage.change(mutation, "frank", **given)
        assert again == first
        assert await stage.graph.log.last() == last


@pytest.mark.parametrize(
    ("mutation", "given"),
    [
        ("publishPost", {"text": "hi", "replyTo": "#bob's post", "quoteOf": "#bob's post", "idempotencyKey": "both"}),
        ("publishPost", {"text": "hi", "replyTo": "#frank's post", "quoteOf": "#grace's post", "idempotencyKey": "a"}),
        ("publishPost", {"replyTo": "#bob's post", "attachments": [IMAGE] * 4, "idempotencyKey": "no text"}),
        ("publishPost", {"text": " ", "quoteOf": "#bob's post", "attachments": [IMAGE], "idempotencyKey": "white"}),
        ("publishPost", {"text": "?!", "attachments": [IMAGE], "idempotencyKey": "no letters"}),
        ("report", {"subjectId": "#bob", "reason": "SPAM"}),
        ("report", {"subjectId": "#a repost of bob's post", "reason": "OTHER", "comment": "hm"}),
    ],
)
async def test_accepted_once(stage: Stage, mutation: str, given: dict[str, Any]) -> None:
    """One event in all, and the same answer to both requests."""
    before = await stage.graph.log.last()
    answer = await stage.change(mutation, "frank", **given)
    assert answer["data"][mutation]["userErrors"] == []
    written = [event async for event in stage.graph.log.replay(before, await stage.graph.log.last())]
    assert len(written) == 1


@pytest.mark.parametrize(
    ("mutation", "given"),
    [
        ("unlikePost", {"postId": "#frank's post"}),
        ("unrepost", {"postId": "#frank's post"}),
        ("unmute", {"userId": "#carol"}),
        ("unblock", {"userId": "#carol"}),
        ("block", {"userId": "#dave"}),
        ("deleteList", {"listId": "#a deleted list"}),
        ("updateList", {"listId": "#alice's list", "name": "of alice"}),
        ("updateList", {"listId": "#alice's list", "addUserIds": ["#frank"], "removeUserIds": ["#bob", "#nobody"]}),
        ("updateList", {"listId": "#alice's list", "addUserIds": [], "removeUserIds": None}),
        ("markNotificationsRead", {"upTo": encode_cursor(CursorKind.LOG, 1)}),
    ],
)
async def test_changes_that_change_nothing(stage: Stage, mutation: str, given: dict[str, Any]) -> None:
    """They succeed."""
    last = await stage.graph.log.last()
    answer = await stage.change(mutation, **given)
    assert answer["data"][mutation]["userErrors"] == []
    assert await stage.graph.log.last() == last


async def test_the_51st_list_is_one_too_many(stage: Stage) -> None:
    """This concerns no field of the input."""
    last = await stage.graph.log.last()
    answer = await stage.change("createList", "heidi", name="one more")
    [error] = answer["data"]["createList"]["userErrors"]
    assert (error["code"], error["field"]) == ("TOO_MANY", None)
    assert await stage.graph.log.last() == last


@pytest.mark.parametrize("id_", ["#bob's post", "nonsense"])
@pytest.mark.parametrize("mutation", PAYLOADS)
async def test_mutations_require_a_viewer(stage: Stage, mutation: str, id_: str) -> None:
    """Whatever the input."""
    given = {FIELDS[mutation]: id_} | ({"reason": "SPAM"} if mutation == "report" else {})
    last = await stage.graph.log.last()
    answer = await stage.change(mutation, None, **given)
    assert answer["data"] == {mutation: None}
    assert [(each["path"], each["extensions"]) for each in answer["errors"]] == [
        ([mutation], {"code": "UNAUTHENTICATED"})
    ]
    assert await stage.graph.log.last() == last


async def test_an_anonymous_client_has_nothing_of_its_own(stage: Stage) -> None:
    """Null without an error. A subscription needs a viewer."""
    own = "notifications { id } likedPosts(first: 1) { nodes { id } } mutedUsers(first: 1) { nodes { id } }"
    own += " blockedUsers(first: 1) { nodes { id } } lists { id } sessions { id } viewer { id }"
    answer = await stage.ask(f"{{ {own} }}", None)
    assert "errors" not in answer
    assert set(answer["data"].values()) == {None}
    document = """query ($post: ID!) { post(id: $post) { viewerHasLiked viewerHasReposted author {
        relationship { id } homeTimeline { id } followersYouKnow(first: 1) { nodes { id } } } } }"""
    post = (await stage.ask(document, None, post="#bob's post"))["data"]["post"]
    nothing = {"relationship": None, "homeTimeline": None, "followersYouKnow": None}
    assert post == {"viewerHasLiked": None, "viewerHasReposted": None, "author": nothing}
    async with stage.api.socket() as socket:
        await socket.subscribe("1", "subscription { notifications { cursor } }")
        message = await socket.receive()
        errors = message["payload"] if message["type"] == "error" else message["payload"]["errors"]
        assert errors[0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("paging", BAD_PAGES)
@pytest.mark.parametrize("document", PAGES)
async def test_bad_pages(stage: Stage, document: str, paging: str) -> None:
    """Sizes from 1 to 100, from one end, and cursors of the same list."""
    other = CursorKind.POST if PAGES[document] is not CursorKind.POST else CursorKind.USER
    paging = paging.replace("$", f'"{encode_cursor(other, 1)}"')
    for name in ("bob's post", "alice's list"):
        document = document.replace(f"#{name}", stage.ids[name])
    answer = await stage.ask(f"{{ {document % paging} }}".replace("()", ""))
    assert {each["extensions"]["code"] for each in answer["errors"]} == {"BAD_USER_INPUT"}


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
    """Of a search of posts."""
    answer = await stage.ask(f"query ($given: PostFilter!) {{ {SEARCH} }}", None, given=given)
    assert [(each["path"], each["extensions"]["code"]) for each in answer["errors"]] == [
        (["searchPosts"], "BAD_USER_INPUT")
    ]


@pytest.mark.parametrize("text", ["", " ", "?!", "x" * 51])
async def test_bad_searches_of_users(stage: Stage, text: str) -> None:
    document = "query ($text: String!) { searchUsers(text: $text, first: 1) { nodes { id } } }"
    answer = await stage.ask(document, None, text=text)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]


@pytest.mark.parametrize("first", [0, 11, -1])
async def test_bad_numbers_of_actors(stage: Stage, first: int) -> None:
    """The viewer has a notification."""
    document = "query ($n: Int!) { notifications { entries(first: 1) { nodes { actors(first: $n) { id } } } } }"
    answer = await stage.ask(document, n=first)
    assert [each["extensions"]["code"] for each in answer["errors"]] == ["BAD_USER_INPUT"]


async def test_reads_do_not_tell_hidden_from_absent(stage: Stage) -> None:
    """Posts, searches and profiles of hidden users are like those that do not exist."""
    document = "query ($given: ID!) { post(id: $given) { id } node(id: $given) { id } nodes(ids: [$given]) { id } }"
    posts = ("no post", "a future post", "a deleted post", "eve's post", "carol's post", "a repost of eve's post")
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
