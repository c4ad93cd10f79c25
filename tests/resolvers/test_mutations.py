"""Mutations: their changes, their payloads, and invalid input, which writes nothing."""

import pytest

import schema
from graph.errors import ProblemCode, Rejected
from resolvers import ids
from resolvers.context import Context
from resolvers.payloads import Payload, mutation
from tests.resolvers.conftest import PASSWORD, Answer, World, post_id, user_id

FOLLOW = """mutation ($ids: [ID!]!) { followUsers(input: {userIds: $ids}) {
    results { userId outcome error { code message field params { name value } }
        user { login relationship { state } } }
    viewer { user { followingCount } } userErrors { code message field } } }"""
UNFOLLOW = FOLLOW.replace("followUsers(", "unfollowUsers(")
PUBLISH = """mutation ($input: PublishPostInput!) { publishPost(input: $input) {
    post { id text author { login } platform location { latitude } }
    postEdge { cursor node { id } } timelineEdge { cursor node { __typename id } }
    userErrors { code message field } } }"""
DELETE = """mutation ($id: ID!) { deletePost(input: {postId: $id}) {
    deletedPostId viewer { user { postsCount } } userErrors { code field } } }"""
SIGN_UP = """mutation ($login: String!, $password: String!, $name: String, $key: String) {
    signUp(input: {login: $login, password: $password, name: $name, idempotencyKey: $key}) {
        credentials { token expiresAt viewer { user { login name } } } userErrors { code field } } }"""
UPDATE = """mutation ($input: UpdateProfileInput!) { updateProfile(input: $input) {
    user { name bio avatarUrl websiteUrl } userErrors { code field } } }"""
LOG_IN = """mutation ($login: String!, $password: String!) { logIn(input: {login: $login, password: $password}) {
    credentials { token viewer { user { login } } } userErrors { code message field } } }"""


def codes(answer: Answer, name: str) -> list[tuple[str, list[str] | None]]:
    """Return the user errors of a mutation as code and field."""
    assert answer.errors == []
    return [(error["code"], error["field"]) for error in answer.data[name]["userErrors"]]


async def last_event(world: World) -> int:
    """Return the number of the last event, which changes if and only if something is written."""
    return await world.graph.log.last()


async def test_sign_up(world: World) -> None:
    """The user gets a session, and the name defaults to the login."""
    answer = await world.ask(SIGN_UP, login="Alice_1", password=PASSWORD)
    assert codes(answer, "signUp") == []
    credentials = answer.data["signUp"]["credentials"]
    assert credentials["viewer"] == {"user": {"login": "alice_1", "name": "alice_1"}}
    assert credentials["token"].startswith("token of ")


async def test_sign_up_again_with_the_same_key(world: World) -> None:
    """The answer has another session of the same user. Without the key, the login is taken."""
    given = {"login": "alice", "password": PASSWORD, "name": "Alice", "key": "k1"}
    first, again = [(await world.ask(SIGN_UP, **given)).data["signUp"]["credentials"] for _ in range(2)]
    assert first["viewer"] == again["viewer"] == {"user": {"login": "alice", "name": "Alice"}}
    [alice] = await world.graph.users.ids_of_logins(["alice"])
    assert len(await world.graph.sessions.live_sessions(alice or 0)) == 2
    for change, expected in (
        ({"name": "Bob"}, ("IDEMPOTENCY_MISMATCH", ["idempotencyKey"])),
        ({"password": "another password"}, ("IDEMPOTENCY_MISMATCH", ["idempotencyKey"])),
        ({"key": None}, ("LOGIN_TAKEN", ["login"])),
    ):
        assert codes(await world.ask(SIGN_UP, **{**given, **change}), "signUp") == [expected]


@pytest.mark.parametrize(
    ("login", "password", "name", "expected"),
    [
        ("x", PASSWORD, None, [("LOGIN_INVALID", ["login"])]),
        ("小明", PASSWORD, None, [("LOGIN_INVALID", ["login"])]),
        ("alice\n", PASSWORD, None, [("LOGIN_INVALID", ["login"])]),
        ("taken", PASSWORD, None, [("LOGIN_TAKEN", ["login"])]),
        ("alice", "short", None, [("PASSWORD_TOO_WEAK", ["password"])]),
        ("alice", PASSWORD, "", [("INVALID", ["name"])]),
        ("alice", PASSWORD, "\ud800", [("INVALID", ["name"])]),
        ("x", "short", None, [("LOGIN_INVALID", ["login"]), ("PASSWORD_TOO_WEAK", ["password"])]),
    ],
)
async def test_invalid_sign_up(
    world: World, login: str, password: str, name: str | None, expected: list[tuple[str, list[str]]]
) -> None:
    """All problems are reported together, and no user is created."""
    await world.users("taken")
    answer = await world.ask(SIGN_UP, login=login, password=password, name=name)
    assert codes(answer, "signUp") == expected
    assert answer.data["signUp"]["credentials"] is None
    assert (await world.ask('{ user(by: {login: "alice"}) { id } }')).data == {"user": None}


async def test_log_in_and_out(world: World) -> None:
    """The correct password starts a session; a log-out ends that session or all of them."""
    alice, _ = await world.users("alice", "bob")
    answer = await world.ask(LOG_IN, login="ALICE", password=PASSWORD)
    assert answer.data["logIn"]["credentials"] == {
        "token": f"token of {alice.id}",
        "viewer": {"user": {"login": "alice"}},
    }

    viewer, other = await world.viewer(alice), await world.graph.sessions.start(alice.id)
    assert viewer is not None
    out = "mutation ($everywhere: Boolean) { logOut(input: {everywhere: $everywhere}) { userErrors { code } } }"
    assert (await world.ask(out, alice)).data == {"logOut": {"userErrors": []}}
    assert not await world.graph.sessions.is_live(alice.id, viewer.session)
    assert await world.graph.sessions.is_live(alice.id, other.id)
    await world.ask(out, alice, everywhere=None)
    assert await world.graph.sessions.is_live(alice.id, other.id)
    await world.ask(out, alice, everywhere=True)
    assert not await world.graph.sessions.is_live(alice.id, other.id)


@pytest.mark.parametrize("login", ["alice", "nobody", "", "\ud800"])
async def test_wrong_credentials(world: World, login: str) -> None:
    """A wrong password and an unknown login give the same error, without a field."""
    await world.users("alice")
    answer = await world.ask(LOG_IN, login=login, password="wrong password")
    assert codes(answer, "logIn") == [("WRONG_CREDENTIALS", None)]
    assert answer.data["logIn"]["credentials"] is None


async def test_a_code_that_a_mutation_does_not_declare_is_a_warning(world: World) -> None:
    """Warnings fail tests, so the description of each mutation names all codes of its user errors."""

    @mutation(Payload, ProblemCode.INVALID)
    async def change(context: Context) -> Payload:
        raise Rejected.because(ProblemCode.BLOCKED, "no")

    with pytest.warns(RuntimeWarning, match="change does not declare ProblemCode.BLOCKED"):
        payload = await change(Context(world.graph, None, str))
    assert [problem.code for problem in payload.user_errors] == [ProblemCode.BLOCKED]
    assert "No later request returns the post. User errors: `NOT_FOUND`, `NOT_ALLOWED`." in schema.sdl()


@pytest.mark.parametrize(
    "call",
    [
        "logOut(input: {}) { userErrors { code } }",
        'updateProfile(input: {name: "x"}) { userErrors { code } }',
        'publishPost(input: {text: "x"}) { userErrors { code } }',
        'deletePost(input: {postId: "x"}) { userErrors { code } }',
        'followUsers(input: {userIds: ["x"]}) { userErrors { code } }',
        "unfollowUsers(input: {userIds: []}) { userErrors { code } }",
    ],
)
async def test_anonymous_requests_write_nothing(world: World, call: str) -> None:
    """The error is UNAUTHENTICATED, whatever the input."""
    before = await last_event(world)
    answer = await world.ask(f"mutation {{ {call} }}")
    name = call.partition("(")[0]
    assert (answer.data, answer.errors) == ({name: None}, [((name,), "UNAUTHENTICATED")])
    assert await last_event(world) == before


async def test_an_invalid_profile_writes_nothing(world: World) -> None:
    """All problems are reported together. A name cannot be cleared."""
    [alice] = await world.users("alice")
    before = await last_event(world)
    long = "https://example.org/" + "x" * 500
    answer = await world.ask(UPDATE, alice, input={"name": "x" * 51, "bio": "y" * 301, "avatarUrl": long})
    assert codes(answer, "updateProfile") == [("INVALID", ["name"]), ("INVALID", ["bio"]), ("INVALID", ["avatarUrl"])]
    assert answer.data["updateProfile"]["user"] is None
    answer = await world.ask(UPDATE, alice, input={"name": None, "websiteUrl": "javascript:alert(1)"})
    assert codes(answer, "updateProfile") == [("INVALID", ["name"]), ("INVALID", ["websiteUrl"])]
    assert await last_event(world) == before


async def test_publish(world: World) -> None:
    """The payload has the post as a node and as edges of lists of posts and of timelines, with the same cursor."""
    [alice] = await world.users("alice")
    given = {"text": "  hello  ", "platform": "Web", "location": {"latitude": 1.5, "longitude": 2}}
    answer = await world.ask(PUBLISH, alice, input=given)
    assert codes(answer, "publishPost") == []
    post, edge = answer.data["publishPost"]["post"], answer.data["publishPost"]["postEdge"]
    assert answer.data["publishPost"]["timelineEdge"] == {**edge, "node": {"__typename": "Post", **edge["node"]}}
    assert post == {
        "id": edge["node"]["id"],
        "text": "hello",
        "author": {"login": "alice"},
        "platform": "Web",
        "location": {"latitude": 1.5},
    }
    await world.post(alice, "newer")
    document = """query ($c: String!) { viewer { user { timeline {
        entries(last: 5, before: $c) { nodes { ... on Post { text } } } } } } }"""
    page = await world.ask(document, alice, c=edge["cursor"])
    assert page.data["viewer"]["user"]["timeline"]["entries"]["nodes"] == [{"text": "newer"}]


@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"text": " \n\t"}, "TEXT_EMPTY", ["text"]),
        ({"text": "x" * 1001}, "TEXT_TOO_LONG", ["text"]),
        ({"text": "a\ud800"}, "INVALID", ["text"]),
        ({"text": "x", "platform": "x" * 31}, "INVALID", ["platform"]),
        ({"text": "x", "location": {"latitude": 91, "longitude": 0}}, "INVALID", ["location", "latitude"]),
        ({"text": "x", "location": {"latitude": 0, "longitude": -181}}, "INVALID", ["location", "longitude"]),
        ({"text": "x", "idempotencyKey": ""}, "INVALID", ["idempotencyKey"]),
        ({"text": "x", "idempotencyKey": "钥匙"}, "INVALID", ["idempotencyKey"]),
    ],
)
async def test_invalid_posts(world: World, given: dict[str, object], code: str, field: list[str]) -> None:
    """Each problem names its field, and nothing is written."""
    [alice] = await world.users("alice")
    before = await last_event(world)
    answer = await world.ask(PUBLISH, alice, input=given)
    assert codes(answer, "publishPost") == [(code, field)]
    assert answer.data["publishPost"]["post"] is answer.data["publishPost"]["postEdge"] is None
    assert await last_event(world) == before


async def test_publish_again_with_the_same_key(world: World) -> None:
    """The same key and input return the same post; a different input is an error."""
    [alice] = await world.users("alice")
    given = {"text": "once", "idempotencyKey": "k1"}
    first, again = [await world.ask(PUBLISH, alice, input=given) for _ in range(2)]
    assert first.data == again.data
    other = await world.ask(PUBLISH, alice, input={**given, "text": "twice"})
    assert codes(other, "publishPost") == [("IDEMPOTENCY_MISMATCH", ["idempotencyKey"])]


async def test_delete(world: World) -> None:
    """The payload has the id of the deleted post and the viewer's new count, and a retry returns the same."""
    [alice] = await world.users("alice")
    post, _ = await world.post(alice, "a", "b")
    for _ in range(2):
        answer = await world.ask(DELETE, alice, id=post_id(post))
        assert answer.data["deletePost"] == {
            "deletedPostId": post_id(post),
            "viewer": {"user": {"postsCount": 1}},
            "userErrors": [],
        }


async def test_invalid_deletions(world: World) -> None:
    """The id is malformed, of another type, unknown, or of another user's post."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "mine")
    for id, code in (
        ("x", "NOT_FOUND"),
        (user_id(bob), "NOT_FOUND"),
        (ids.encode(ids.Kind.POST, 1), "NOT_FOUND"),
        (post_id(post), "NOT_ALLOWED"),
    ):
        answer = await world.ask(DELETE, alice, id=id)
        assert codes(answer, "deletePost") == [(code, ["postId"])]
        assert answer.data["deletePost"]["deletedPostId"] is answer.data["deletePost"]["viewer"] is None


async def test_each_mutation_of_a_document_shows_its_own_state(world: World) -> None:
    """Each payload of a document shows the state after its own mutation."""
    alice, bob = await world.users("alice", "bob")
    part = """%s(input: {userIds: [$id]}) { results { user { followersCount relationship { state } } }
        viewer { user { followingCount following(first: 5) { nodes { login } } } } }"""
    document = (
        f"mutation ($id: ID!) {{ a: {part % 'followUsers'} b: {part % 'unfollowUsers'} c: {part % 'followUsers'} }}"
    )
    answer = await world.ask(document, alice, id=user_id(bob))
    assert answer.errors == []
    seen = [
        (
            payload["results"][0]["user"]["relationship"]["state"],
            payload["results"][0]["user"]["followersCount"],
            payload["viewer"]["user"]["followingCount"],
            len(payload["viewer"]["user"]["following"]["nodes"]),
        )
        for payload in answer.data.values()
    ]
    assert seen == [("FOLLOWING", 1, 1, 1), ("STRANGER", 0, 0, 0), ("FOLLOWING", 1, 1, 1)]


async def test_a_problem_has_the_values_of_its_message(world: World) -> None:
    """With the values, a client can show the message in another language."""
    [alice] = await world.users("alice")
    document = (
        "mutation ($input: PublishPostInput!) { publishPost(input: $input) { userErrors { params { name value } } } }"
    )
    answer = await world.ask(document, alice, input={"text": "x" * 1001})
    [problem] = answer.data["publishPost"]["userErrors"]
    assert problem["params"] == [{"name": "max", "value": "1000"}, {"name": "length", "value": "1001"}]
