"""Log-ins and log-outs within a document, and limits on failed log-ins."""

from unittest.mock import patch

import pytest

from graph.errors import Overloaded
from graph.log.events import SessionsEnded
from resolvers import ids
from resolvers.context import Context, LocalClient
from schema import schema
from tests.resolvers.conftest import PASSWORD, World, issue_token, post_id, user_id
from tests.resolvers.test_mutations import LOG_IN, SIGN_UP

SESSIONS = "{ viewer { sessions { id createdAt lastUsedAt userAgent current } } }"
END = """mutation ($id: ID!) { endSession(input: {sessionId: $id}) {
    endedSessionId userErrors { code field } } %s }"""
CHANGE = """mutation ($current: String!, $new: String!) {
    changePassword(input: {currentPassword: $current, newPassword: $new}) {
        credentials { token expiresAt viewer { user { login } } } userErrors { code field } } %s }"""
NODES = "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Session { current userAgent } } }"
LOG_OUT = "mutation { logOut(input: {everywhere: %s}) { userErrors { code } } %s }"


@pytest.mark.parametrize("everywhere", ["true", "false"])
@pytest.mark.parametrize(
    "later",
    [
        'publishPost(input: {text: "too late"}) { post { id } }',
        'updateProfile(input: {name: "too late"}) { user { name } }',
        "followUsers(input: {userIds: [ID]}) { results { outcome } }",
        "unfollowUsers(input: {userIds: [ID]}) { results { outcome } }",
        "deletePost(input: {postId: POST}) { deletedPostId }",
        "again: logOut(input: {everywhere: true}) { userErrors { code } }",
    ],
)
async def test_nothing_is_written_after_the_log_out_of_a_document(world: World, later: str, everywhere: str) -> None:
    """The fields after a log-out have no viewer."""
    alice, bob = await world.users("alice", "bob")
    await world.follow(alice, bob)
    [post] = await world.post(alice, "hello")
    later = later.replace("ID]", f'"{user_id(bob)}"]').replace("POST", f'"{post_id(post)}"')

    answer = await world.ask(LOG_OUT % (everywhere, later), alice)

    assert [code for _, code in answer.errors] == ["UNAUTHENTICATED"]
    assert answer.data["logOut"] == {"userErrors": []}
    last = await world.graph.log.get(await world.graph.log.last())
    assert last is not None
    assert isinstance(last.body, SessionsEnded)


async def test_fields_before_the_log_out_of_a_document_are_executed(world: World) -> None:
    """Fields run in order. The payload of a later log-in shows the new viewer, who does not become the sender."""
    alice, bob = await world.users("alice", "bob")
    await world.follow(bob, alice)
    document = """mutation { publishPost(input: {text: "in time"}) { post { author { login } } }
        logOut(input: {everywhere: false}) { userErrors { code } }
        late: publishPost(input: {text: "too late"}) { post { id } }
        logIn(input: {login: "bob", password: "correct horse"}) { credentials { viewer { user { login } ...Home } } }
        again: publishPost(input: {text: "as bob"}) { post { id } } }
        fragment Home on Viewer {
            homeTimeline { entries(first: 1) { nodes { ... on Post { text } } } } sessions { current } }"""

    answer = await world.ask(document, alice)

    assert answer.data["publishPost"] == {"post": {"author": {"login": "alice"}}}
    home = {"entries": {"nodes": [{"text": "in time"}]}}
    assert answer.data["logIn"]["credentials"]["viewer"] == {
        "user": {"login": "bob"},
        "homeTimeline": home,
        "sessions": [{"current": True}],
    }
    assert answer.data["late"] is answer.data["again"] is None
    assert answer.errors == [(("late",), "UNAUTHENTICATED"), (("again",), "UNAUTHENTICATED")]


async def test_too_many_concurrent_passwords_are_an_error(world: World) -> None:
    """This is not a user error, because the input is valid and a retry is safe."""

    async def reject(network: str) -> None:
        raise Overloaded("busy")

    with patch.object(world.graph.users.hashing, "turn", reject):
        log_in = await world.ask(LOG_IN, login="alice", password=PASSWORD)
        sign_up = await world.ask(SIGN_UP, login="alice", password=PASSWORD)

    assert log_in.errors == [(("logIn",), "OVERLOADED")]
    assert sign_up.errors == [(("signUp",), "OVERLOADED")]


async def test_failed_log_ins_are_counted_by_network(world: World) -> None:
    """Another network can still log in."""
    await world.users("alice")

    async def log_in(network: str, password: str) -> list[str]:
        context = Context(world.graph, None, issue_token, client=LocalClient(network))
        result = await schema.execute(
            LOG_IN, context_value=context, variable_values={"login": "alice", "password": password}
        )
        assert result.data is not None
        return [error["code"] for error in result.data["logIn"]["userErrors"]]

    for _ in range(10):
        assert await log_in("192.0.2.1", "wrong horse") == ["WRONG_CREDENTIALS"]
    assert await log_in("192.0.2.1", PASSWORD) == ["TOO_MANY_ATTEMPTS"]
    assert await log_in("192.0.2.2", PASSWORD) == []


async def test_a_viewer_sees_their_sessions(world: World) -> None:
    """One of them is the session of the request. They take one round trip, including the session check."""
    [alice] = await world.users("alice")
    viewer = await world.viewer(alice)
    await world.graph.sessions.start(alice.id, "Phone")
    assert viewer is not None

    answer = await world.ask(SESSIONS, alice)

    assert (answer.errors, answer.round_trips) == ([], 1)
    listed = {session["userAgent"]: session for session in answer.data["viewer"]["sessions"]}
    assert {agent: session["current"] for agent, session in listed.items()} == {"Phone": False, None: True}
    assert listed["Phone"]["lastUsedAt"] == listed["Phone"]["createdAt"]
    assert (await world.ask(SESSIONS)).data == {"viewer": None}


async def test_sessions_are_nodes_of_their_user_only(world: World) -> None:
    """Only live sessions are found. Any number of them takes one round trip."""
    alice, bob = await world.users("alice", "bob")
    await world.viewer(alice)
    await world.graph.sessions.start(alice.id, "Phone")
    listed = [session["id"] for session in (await world.ask(SESSIONS, alice)).data["viewer"]["sessions"]]

    answer = await world.ask(NODES, alice, ids=[*listed, ids.encode(ids.Kind.SESSION, 7)])

    assert answer.round_trips == 1
    *found, unknown = answer.data["nodes"]
    assert [(node["__typename"], node["id"]) for node in found] == [("Session", id_) for id_ in listed]
    assert unknown is None
    for viewer in (bob, None):
        assert (await world.ask(NODES, viewer, ids=listed)).data == {"nodes": [None, None]}


async def test_end_session(world: World) -> None:
    """It ends a session of the viewer, once. Others, malformed and unknown ids are not found; nothing is written."""
    alice, bob = await world.users("alice", "bob")
    await world.viewer(alice)
    await world.graph.sessions.start(alice.id, "Phone")
    phone = next(
        each["id"] for each in (await world.ask(SESSIONS, alice)).data["viewer"]["sessions"] if each["userAgent"]
    )
    missing = {"endedSessionId": None, "userErrors": [{"code": "NOT_FOUND", "field": ["sessionId"]}]}
    before = await world.graph.log.last()

    for by, id_ in ((bob, phone), (alice, "?"), (alice, user_id(alice)), (alice, ids.encode(ids.Kind.SESSION, 7))):
        assert (await world.ask(END % "", by, id=id_)).data == {"endSession": missing}
    assert await world.graph.log.last() == before
    assert (await world.ask(END % "", None, id=phone)).errors == [(("endSession",), "UNAUTHENTICATED")]

    answer = await world.ask(END % "", alice, id=phone)
    assert answer.data == {"endSession": {"endedSessionId": phone, "userErrors": []}}
    assert [each["current"] for each in (await world.ask(SESSIONS, alice)).data["viewer"]["sessions"]] == [True]
    assert (await world.ask(END % "", alice, id=phone)).data == {"endSession": missing}


async def test_the_end_of_the_current_session_is_a_log_out(world: World) -> None:
    """Later fields of the document have no viewer."""
    [alice] = await world.users("alice")
    [current] = (await world.ask(SESSIONS, alice)).data["viewer"]["sessions"]

    answer = await world.ask(END % 'publishPost(input: {text: "late"}) { post { id } }', alice, id=current["id"])

    assert answer.data == {"endSession": {"endedSessionId": current["id"], "userErrors": []}, "publishPost": None}
    assert answer.errors == [(("publishPost",), "UNAUTHENTICATED")]
    assert await world.graph.sessions.live_sessions(alice.id) == []


async def test_change_password(world: World) -> None:
    """The payload has a new session, which later fields of the document use; all others have ended."""
    [alice] = await world.users("alice")
    old = await world.viewer(alice)
    assert old is not None
    later = 'publishPost(input: {text: "still me"}) { post { author { login } } }'

    answer = await world.ask(CHANGE % later, alice, current=PASSWORD, new="a new password")

    assert answer.errors == []
    changed = answer.data["changePassword"]
    assert changed["userErrors"] == []
    assert changed["credentials"]["token"] == f"token of {alice.id}"
    assert changed["credentials"]["viewer"] == {"user": {"login": "alice"}}
    assert answer.data["publishPost"] == {"post": {"author": {"login": "alice"}}}
    assert not await world.graph.sessions.is_live(alice.id, old.session)
    assert len(await world.graph.sessions.live_sessions(alice.id)) == 1
    for password, codes in ((PASSWORD, ["WRONG_CREDENTIALS"]), ("a new password", [])):
        errors = (await world.ask(LOG_IN, login="alice", password=password)).data["logIn"]["userErrors"]
        assert [error["code"] for error in errors] == codes


async def test_a_refused_change_of_the_password(world: World) -> None:
    """The error names the field, and nothing changes. Anonymous clients have no password."""
    [alice] = await world.users("alice")
    await world.viewer(alice)
    before = await world.graph.log.last()
    for current, new, code, field in (
        ("wrong password", "a new password", "WRONG_CREDENTIALS", "currentPassword"),
        (PASSWORD, "alice", "PASSWORD_TOO_WEAK", "newPassword"),
    ):
        answer = await world.ask(CHANGE % "", alice, current=current, new=new)
        assert answer.data["changePassword"] == {"credentials": None, "userErrors": [{"code": code, "field": [field]}]}
    answer = await world.ask(CHANGE % "", None, current=PASSWORD, new="a new password")
    assert (answer.data, answer.errors) == ({"changePassword": None}, [(("changePassword",), "UNAUTHENTICATED")])
    assert await world.graph.log.last() == before
