"""Bad and repeated input of conversations, over HTTP and WebSocket: the answers agree, and nothing is written.

All tests share one server and one world. They make only repeatable changes, each to a part of the world that no other
test uses.
"""

from typing import Any, TypeAlias

import pytest

from graph.paging import CursorKind, encode_cursor
from tests.server.endpoint.conversation_stage import HOST, IMAGE, PAYLOADS, Stage, document_of

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
ACROSS = "You have blocked this user, or this user has blocked you."
REPOSTS = (
    "a repost of bob's post",
    "a repost of a deleted post",
    "a repost of eve's post",
    "a repost of carol's post",
    "an undone repost",
)
"""No mutation takes them for posts, whether their ids say what they are or not."""
MISSING_POSTS = (
    "nonsense", "", "x" * 101, "no post", "a future post", "a follow", "bob", "a deleted post", "eve's post",
    "ivan's post", *REPOSTS, *(f"{repost} as a post" for repost in REPOSTS), "bob's post as a repost",
)  # fmt: skip
MISSING_USERS = ("nonsense", "", "x" * 101, "nobody", "a future user", "bob's post", "eve", "ivan")
"""Eve is suspended, and Ivan has deleted his account."""
MISSING_LISTS = ("nonsense", "", "no list", "a deleted list", "bob's list", "bob", "the timeline of alice's list")
MISSING_SESSIONS = ("nonsense", "", "no session", "an ended session", "bob's session", "bob")
ACROSS_BLOCKS = ("carol's post", "dave's post")
"""Alice blocks Dave, and Carol blocks Alice."""


def problem(code: str, message: str | None, *field: str) -> dict[str, Any]:
    """Return a user error. A message of None stands for any message."""
    return {"code": code, "message": message, "field": list(field) or None}


NOT_FOUND_SUBJECT = problem("NOT_FOUND", NO_SUBJECT, "subjectId")


def missing_posts() -> list[Refusal]:
    """Return mutations of posts that the viewer cannot see or cannot act on."""
    found: list[Refusal] = []
    for post in (*MISSING_POSTS, *ACROSS_BLOCKS):
        gone = problem("NOT_FOUND", NO_POST, "postId")
        refused = problem("BLOCKED", ACROSS, "postId") if post in ACROSS_BLOCKS else gone
        found += [(mutation, {"postId": f"#{post}"}, [refused]) for mutation in ("likePost", "repostPost")]
        found += [(mutation, {"postId": f"#{post}"}, [gone]) for mutation in ("unlikePost", "unrepostPost")]
        found += [("bookmarkPost", {"postId": f"#{post}"}, [gone])]
        for field in ("replyToId", "quotedPostId"):
            found += [("publishPost", {"text": "hi", field: f"#{post}"}, [{**refused, "field": [field]}])]
        if post != "bob":
            found += [("report", {"subjectId": f"#{post}", "reason": "SPAM"}, [NOT_FOUND_SUBJECT])]
    for post in (*MISSING_POSTS, "carol's post"):
        found += [("deletePost", {"postId": f"#{post}"}, [problem("NOT_FOUND", NO_POST, "postId")])]
    return found


def missing_others() -> list[Refusal]:
    """Return mutations of users, lists and sessions that the viewer cannot see."""
    found: list[Refusal] = []
    for user in MISSING_USERS:
        no_user = [problem("NOT_FOUND", NO_USER, "userId")]
        found += [
            (each, {"userId": f"#{user}"}, no_user) for each in ("muteUser", "unmuteUser", "blockUser", "unblockUser")
        ]
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
    *((each, {"userId": "#alice"}, [problem("INVALID", None, "userId")]) for each in ("muteUser", "unmuteUser")),
    *((each, {"userId": "#alice"}, [problem("INVALID", None, "userId")]) for each in ("blockUser", "unblockUser")),
    ("report", {"subjectId": "#alice", "reason": "SPAM"}, [problem("INVALID", None, "subjectId")]),
    ("report", {"subjectId": "#bob", "reason": "SPAM", "comment": "x" * 1001}, [problem("INVALID", None, "comment")]),
    ("publishPost", {}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"text": " \n", "replyToId": "#bob's post"}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"quotedPostId": "#bob's post", "attachments": []}, [problem("TEXT_EMPTY", None, "text")]),
    ("publishPost", {"text": "hi", "attachments": [IMAGE] * 5}, [problem("TOO_MANY", None, "attachments")]),
    (
        "publishPost",
        {"text": "hi", "replyToId": "#no post", "quotedPostId": "#carol's post"},
        [problem("NOT_FOUND", NO_POST, "replyToId"), problem("BLOCKED", ACROSS, "quotedPostId")],
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
    "publishPost": "replyToId",
    "deletePost": "postId",
    **dict.fromkeys(
        ("likePost", "unlikePost", "repostPost", "unrepostPost", "bookmarkPost", "removeBookmark"), "postId"
    ),
    **dict.fromkeys(("muteUser", "unmuteUser", "blockUser", "unblockUser"), "userId"),
    "report": "subjectId",
    "markNotificationsRead": "upTo",
    "createList": "name",
    **dict.fromkeys(("updateList", "deleteList"), "listId"),
    "endSession": "sessionId",
    "deleteAccount": "password",
}
"""A field of the input of each mutation, with which the input is complete."""


REFUSALS = [*missing_posts(), *missing_others(), *INVALID]


@pytest.mark.parametrize(
    ("mutation", "given", "problems"), REFUSALS, ids=[f"{mutation} {given}"[:70] for mutation, given, _ in REFUSALS]
)
async def test_bad_input(stage: Stage, mutation: str, given: dict[str, Any], problems: list[dict[str, Any]]) -> None:
    """Bad input writes nothing, and hidden objects give the same errors as missing ones."""
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
            for pair in (("likePost", "unlikePost"), ("repostPost", "unrepostPost"))
            for post in ("bob's post", "frank's post")
        ),
        ("muteUser", "unmuteUser", {"userId": "#bob"}),
        ("blockUser", "unblockUser", {"userId": "#heidi"}),
    ],
)
async def test_repetitions(stage: Stage, does: str, undoes: str, given: dict[str, Any]) -> None:
    """A repeated mutation gives the same answer and writes nothing, also for the viewer's own posts."""
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
        (
            "publishPost",
            {"text": "hi", "replyToId": "#bob's post", "quotedPostId": "#bob's post", "idempotencyKey": "both"},
        ),
        (
            "publishPost",
            {"text": "hi", "replyToId": "#frank's post", "quotedPostId": "#grace's post", "idempotencyKey": "a"},
        ),
        ("publishPost", {"replyToId": "#bob's post", "attachments": [IMAGE] * 4, "idempotencyKey": "no text"}),
        (
            "publishPost",
            {"text": " ", "quotedPostId": "#bob's post", "attachments": [IMAGE], "idempotencyKey": "white"},
        ),
        ("publishPost", {"text": "?!", "attachments": [IMAGE], "idempotencyKey": "no letters"}),
        ("report", {"subjectId": "#bob", "reason": "SPAM"}),
        ("report", {"subjectId": "#bob's post", "reason": "OTHER", "comment": "hm"}),
    ],
)
async def test_accepted_once(stage: Stage, mutation: str, given: dict[str, Any]) -> None:
    """Both requests get the same answer, and only one event is written."""
    before = await stage.graph.log.last()
    answer = await stage.change(mutation, "frank", **given)
    assert answer["data"][mutation]["userErrors"] == []
    written = [event async for event in stage.graph.log.replay(before, await stage.graph.log.last())]
    assert len(written) == 1


@pytest.mark.parametrize(
    ("mutation", "given"),
    [
        ("unlikePost", {"postId": "#frank's post"}),
        ("unrepostPost", {"postId": "#frank's post"}),
        ("unmuteUser", {"userId": "#carol"}),
        ("unblockUser", {"userId": "#carol"}),
        ("blockUser", {"userId": "#dave"}),
        ("deleteList", {"listId": "#a deleted list"}),
        ("updateList", {"listId": "#alice's list", "name": "of alice"}),
        ("updateList", {"listId": "#alice's list", "addUserIds": ["#frank"], "removeUserIds": ["#bob", "#nobody"]}),
        ("updateList", {"listId": "#alice's list", "addUserIds": [], "removeUserIds": None}),
        ("markNotificationsRead", {"upTo": encode_cursor(CursorKind.LOG, 1)}),
    ],
)
async def test_changes_that_change_nothing(stage: Stage, mutation: str, given: dict[str, Any]) -> None:
    """They succeed and write nothing."""
    last = await stage.graph.log.last()
    answer = await stage.change(mutation, **given)
    assert answer["data"][mutation]["userErrors"] == []
    assert await stage.graph.log.last() == last


async def test_the_51st_list_is_one_too_many(stage: Stage) -> None:
    """The error names no field of the input."""
    last = await stage.graph.log.last()
    answer = await stage.change("createList", "heidi", name="one more")
    [error] = answer["data"]["createList"]["userErrors"]
    assert (error["code"], error["field"]) == ("TOO_MANY", None)
    assert await stage.graph.log.last() == last


@pytest.mark.parametrize("id_", ["#bob's post", "nonsense"])
@pytest.mark.parametrize("mutation", PAYLOADS)
async def test_mutations_require_a_viewer(stage: Stage, mutation: str, id_: str) -> None:
    """This holds for any input."""
    given = {FIELDS[mutation]: id_} | ({"reason": "SPAM"} if mutation == "report" else {})
    last = await stage.graph.log.last()
    answer = await stage.change(mutation, None, **given)
    assert answer["data"] == {mutation: None}
    assert [(each["path"], each["extensions"]) for each in answer["errors"]] == [
        ([mutation], {"code": "UNAUTHENTICATED"})
    ]
    assert await stage.graph.log.last() == last


async def test_an_anonymous_client_has_nothing_of_its_own(stage: Stage) -> None:
    """Its fields are null without an error. A subscription requires a viewer."""
    own = "homeTimeline { id } notifications { id } likedPosts(first: 1) { nodes { id } } lists { id } sessions { id }"
    own += " bookmarks(first: 1) { nodes { id } } mutedUsers(first: 1) { nodes { id } }"
    own += " blockedUsers(first: 1) { nodes { id } } id user { id }"
    assert await stage.ask(f"{{ viewer {{ {own} }} }}", None) == {"data": {"viewer": None}}
    document = """query ($post: ID!) { post(id: $post) { viewerHasLiked viewerHasReposted author {
        relationship { id } followersYouKnow(first: 1) { nodes { id } } } } }"""
    post = (await stage.ask(document, None, post="#bob's post"))["data"]["post"]
    nothing = {"relationship": None, "followersYouKnow": None}
    assert post == {"viewerHasLiked": None, "viewerHasReposted": None, "author": nothing}
    async with stage.api.socket() as socket:
        await socket.subscribe("1", "subscription { notifications { cursor } }")
        message = await socket.receive()
        errors = message["payload"] if message["type"] == "error" else message["payload"]["errors"]
        assert errors[0]["extensions"]["code"] == "UNAUTHENTICATED"


FOLLOWS = """mutation ($ids: [ID!]!) { %s(input: {userIds: $ids}) {
    results { userId outcome user { id } error { code field } } userErrors { code } } }"""


@pytest.mark.parametrize(
    ("mutation", "refusals"),
    [
        ("followUsers", {"alice": "INVALID", "carol": "BLOCKED", "dave": "BLOCKED"}),
        ("unfollowUsers", {"alice": "INVALID"}),
    ],
)
async def test_follows_that_are_refused(stage: Stage, mutation: str, refusals: dict[str, str]) -> None:
    """Each id has its own error, even a malformed one. The user is returned if the id identifies one."""
    last = await stage.graph.log.last()
    expected = dict.fromkeys(MISSING_USERS, "NOT_FOUND") | refusals

    answer = await stage.ask(FOLLOWS % mutation, ids=[f"#{user}" for user in expected])

    payload = answer["data"][mutation]
    assert payload["userErrors"] == []
    for at, (user, code) in enumerate(expected.items()):
        id_ = stage.resolved(f"#{user}")
        assert payload["results"][at] == {
            "userId": id_,
            "outcome": None,
            "user": None if code == "NOT_FOUND" else {"id": id_},
            "error": {"code": code, "field": ["userIds", str(at)]},
        }
    assert len(payload["results"]) == len(expected)
    assert await stage.graph.log.last() == last
