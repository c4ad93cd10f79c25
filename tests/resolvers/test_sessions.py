"""Log-ins and log-outs within a document, and limits on failed log-ins."""

from unittest.mock import patch

import pytest

from graph.errors import Overloaded
from graph.log.events import SessionsEnded
from resolvers.context import Context, LocalClient
from schema import schema
from tests.resolvers.conftest import PASSWORD, World, issue_token, post_id, user_id
from tests.resolvers.test_mutations import LOG_IN, SIGN_UP

LOG_OUT = "mutation { logOut(input: {everywhere: %s}) { userErrors { code } } %s }"


@pytest.mark.parametrize("everywhere", ["true", "false"])
@pytest.mark.parametrize(
    "later",
    [
        'publishPost(input: {text: "too late"}) { post { id } }',
        'updateProfile(input: {name: "too late"}) { user { name } }',
        "follow(input: {userIds: [ID]}) { results { outcome } }",
        "unfollow(input: {userIds: [ID]}) { results { outcome } }",
        "deletePost(input: {id: POST}) { deletedPostId }",
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
    """Fields run in order, and a later log-in returns a token but does not set the viewer."""
    [alice] = await world.users("alice")
    document = """mutation { publishPost(input: {text: "in time"}) { post { author { login } } }
        logOut(input: {everywhere: false}) { userErrors { code } }
        logIn(input: {login: "alice", password: "correct horse"}) { session { user { login } } }
        late: publishPost(input: {text: "too late"}) { post { id } } }"""

    answer = await world.ask(document, alice)

    assert answer.data["publishPost"] == {"post": {"author": {"login": "alice"}}}
    assert answer.data["logIn"] == {"session": {"user": {"login": "alice"}}}
    assert answer.data["late"] is None
    assert answer.errors == [(("late",), "UNAUTHENTICATED")]


async def test_too_many_concurrent_passwords_are_an_error(world: World) -> None:
    """It is not a user error, because the input is valid and a retry is safe."""

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
