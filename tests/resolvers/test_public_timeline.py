"""The public timeline through the schema."""

from typing import Any

import pytest

from graph.errors import ArchiveUnavailable
from tests.resolvers.conftest import World, texts
from tests.support.graph_worlds import archive_log

PUBLIC = """query ($first: Int, $after: String, $last: Int, $before: String) { publicTimeline { id kind liveCursor
    entries(first: $first, after: $after, last: $last, before: $before) {
        edges { cursor node { author { login } ... on Post { text } } } nodes { ... on Post { text } }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""


async def archive(world: World) -> None:
    await world.graph.worker().drain()
    await archive_log(world.graph)


async def test_everybody_sees_the_newest_posts(world: World) -> None:
    """This includes anonymous clients, and pages in both directions."""
    alice, bob = await world.users("alice", "bob")
    await world.post(alice, "1", "2")
    await world.post(bob, "3")
    await world.post(alice, "4")
    await archive(world)

    first = (await world.ask(PUBLIC, None, first=2)).data["publicTimeline"]
    info = first["entries"]["pageInfo"]
    second = (await world.ask(PUBLIC, bob, first=5, after=info["endCursor"])).data["publicTimeline"]
    back = (await world.ask(PUBLIC, None, last=1)).data["publicTimeline"]

    assert first["kind"] == "PUBLIC"
    assert texts(first["entries"]) == ["4", "3"]
    assert [edge["node"]["author"]["login"] for edge in first["entries"]["edges"]] == ["alice", "bob"]
    assert (info["hasNextPage"], info["hasPreviousPage"]) == (True, False)
    assert texts(second["entries"]) == ["2", "1"]
    assert texts(back["entries"]) == ["1"]
    assert first["id"] == second["id"]
    assert first["liveCursor"] == second["liveCursor"]


async def test_it_is_a_node(world: World) -> None:
    """It has one id for all viewers, and its live cursor comes from the same archive watermark."""
    [alice] = await world.users("alice")
    await world.post(alice, "1")
    await archive(world)
    known = (await world.ask(PUBLIC, None, first=2)).data["publicTimeline"]

    document = """query ($id: ID!, $ids: [ID!]!) { node(id: $id) { ... on Timeline { kind liveCursor } }
        nodes(ids: $ids) { id ... on Timeline { entries(first: 1) { nodes { ... on Post { text } } } } } }"""
    answer = await world.ask(document, alice, id=known["id"], ids=[known["id"], known["id"]])

    assert answer.errors == []
    assert answer.data["node"] == {"kind": "PUBLIC", "liveCursor": known["liveCursor"]}
    assert answer.data["nodes"] == [{"id": known["id"], "entries": {"nodes": [{"text": "1"}]}}] * 2


async def test_a_page_with_authors_costs_two_round_trips(world: World) -> None:
    """One reads the posts and checks the session, the other reads the authors; the rest is SQL."""
    alice, bob = await world.users("alice", "bob")
    await world.post(bob, *(str(n) for n in range(40)))
    await archive(world)

    answer = await world.ask(PUBLIC, alice, first=30)
    assert len(answer.data["publicTimeline"]["entries"]["edges"]) == 30
    assert answer.round_trips <= 3


@pytest.mark.parametrize("arguments", [{}, {"first": 0}, {"first": 101}, {"first": 1, "last": 1}, {"after": "x"}])
async def test_an_invalid_page_is_refused(world: World, arguments: dict[str, Any]) -> None:
    answer = await world.ask(PUBLIC, None, **arguments)

    assert answer.errors == [(("publicTimeline", "entries"), "BAD_USER_INPUT")]


async def test_without_the_archive_it_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The field is null, even as a node, and even if the archive goes down after the timeline has been found."""
    [alice] = await world.users("alice")
    await archive(world)
    known = (await world.ask(PUBLIC, None, first=2)).data["publicTimeline"]
    document = PUBLIC.replace("publicTimeline {", "viewer { user { login } } publicTimeline {")

    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(world.graph.archive, "published", fail)
    answer = await world.ask(document, alice, first=10)
    assert answer.errors == [(("publicTimeline", "entries"), "ARCHIVE_UNAVAILABLE")]

    monkeypatch.setattr(world.graph.archive, "state", fail)
    answer = await world.ask(document, alice, first=10)
    assert answer.errors == [(("publicTimeline",), "ARCHIVE_UNAVAILABLE")]
    assert answer.data == {"viewer": {"user": {"login": "alice"}}, "publicTimeline": None}
    nodes = await world.ask(
        "query ($ids: [ID!]!) { viewer { user { login } } nodes(ids: $ids) { id } }", ids=[known["id"]]
    )
    assert nodes.errors == [(("nodes", 0), "ARCHIVE_UNAVAILABLE")]
