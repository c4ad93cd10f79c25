"""User search through the schema."""

from typing import Any

import pytest

from graph.errors import ArchiveUnavailable
from tests.resolvers.conftest import World, logins
from tests.support.graph_worlds import archive_log

SEARCH = """query ($text: String!, $first: Int, $after: String, $last: Int, $before: String) {
    searchUsers(text: $text, first: $first, after: $after, last: $last, before: $before) {
        edges { cursor node { login name followersCount } } nodes { login }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }"""


async def archive(world: World) -> None:
    await world.graph.worker().drain()
    await archive_log(world.graph)


async def test_users_are_found_in_pages_in_both_directions(world: World) -> None:
    """Anonymous requests can search. The user with exactly this login comes first."""
    await world.users("bob", "bobby", "carol", "bobo")
    await archive(world)

    first = (await world.ask(SEARCH, None, text="bob", first=2)).data["searchUsers"]
    info = first["pageInfo"]
    second = (await world.ask(SEARCH, None, text="bob", first=2, after=info["endCursor"])).data["searchUsers"]
    back = (await world.ask(SEARCH, None, text="bob", last=5, before=second["pageInfo"]["startCursor"])).data

    assert logins(first) == ["bob", "bobo"]
    assert [node["login"] for node in first["nodes"]] == ["bob", "bobo"]
    assert (info["hasNextPage"], info["hasPreviousPage"]) == (True, False)
    assert logins(second) == ["bobby"]
    assert second["pageInfo"]["hasNextPage"] is False
    assert logins(back["searchUsers"]) == ["bob", "bobo"]
    cursors = [edge["cursor"] for edge in first["edges"] + second["edges"]]
    assert cursors == sorted(cursors, reverse=True)


async def test_a_page_with_profiles_costs_two_round_trips(world: World) -> None:
    """One is for the login and one for the profiles; counts would add one more. The rest is SQL."""
    [viewer] = await world.users("viewer")
    await world.users(*(f"bob{n}" for n in range(30)))
    await archive(world)

    answer = await world.ask(SEARCH.replace(" followersCount", ""), viewer, text="bob", first=20)
    assert len(answer.data["searchUsers"]["edges"]) == 20
    assert answer.round_trips == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": "", "first": 1},
        {"text": "!", "first": 1},
        {"text": "a" * 51, "first": 1},
        {"text": "a"},
        {"text": "a", "first": 0},
        {"text": "a", "first": 101},
        {"text": "a", "first": 1, "last": 1},
        {"text": "a", "first": 1, "after": "x"},
        {"text": "a", "first": 1, "after": "post-00000000000001"},
    ],
)
async def test_invalid_arguments_are_refused(world: World, arguments: dict[str, Any]) -> None:
    answer = await world.ask(SEARCH, None, **arguments)

    assert answer.errors == [(("searchUsers",), "BAD_USER_INPUT")]
    assert answer.data == {"searchUsers": None}


async def test_without_the_archive_it_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    [alice] = await world.users("alice")
    document = SEARCH.replace("searchUsers(text", "viewer { user { login } } searchUsers(text")

    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(world.graph.archive, "named", fail)
    answer = await world.ask(document, alice, text="alice", first=10)
    assert answer.errors == [(("searchUsers",), "ARCHIVE_UNAVAILABLE")]
    assert answer.data == {"viewer": {"user": {"login": "alice"}}, "searchUsers": None}
