"""Relationships between a viewer and other users."""

import pytest

from graph import Graph
from graph.model import RelationshipState as State
from tests.support.graph_worlds import befriend, counted, crowd, people


async def test_every_relationship_has_a_state(graph: Graph) -> None:
    """Each state is described from the viewer's side."""
    alice, bob, carol, dave, erin = await people(graph, "alice", "bob", "carol", "dave", "erin")
    await befriend(graph, alice, bob, dave)
    await befriend(graph, carol, alice)
    await befriend(graph, dave, alice)

    found = await graph.relationships.between(alice, [alice, bob, carol, dave, erin, 7, bob])

    assert [relationship.state for relationship in found] == [
        State.YOU,
        State.FOLLOWING,
        State.FOLLOWED_BY,
        State.MUTUAL,
        State.STRANGER,
        State.STRANGER,
        State.FOLLOWING,
    ]
    assert [relationship.subject for relationship in found] == [alice, bob, carol, dave, erin, 7, bob]


async def test_a_relationship_has_the_times_of_the_follows(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await befriend(graph, bob, alice)
    forth, back = [event async for event in graph.log.replay(bob, await graph.log.last())]

    [relationship] = await graph.relationships.between(alice, [bob])

    assert (relationship.following_since, relationship.followed_by_since) == (forth.at, back.at)
    [mirrored] = await graph.relationships.between(bob, [alice])
    assert (mirrored.following_since, mirrored.followed_by_since) == (back.at, forth.at)


async def test_an_unfollow_changes_the_relationship_immediately(graph: Graph) -> None:
    alice, bob = await people(graph, "alice", "bob")
    await befriend(graph, alice, bob)
    await graph.follows.unfollow(alice, [bob])

    [relationship] = await graph.relationships.between(alice, [bob])

    assert (relationship.state, relationship.following_since) == (State.STRANGER, None)


@pytest.mark.counts_reads
@pytest.mark.parametrize("size", [1, 100, 3000])
async def test_relationships_cost_two_commands_and_two_for_the_view(graph: Graph, size: int) -> None:
    """They take 1 round trip, whatever the number of subjects. A request reads its view once."""
    [alice] = await people(graph, "alice")
    subjects = await crowd(graph, size)

    async with counted(graph) as cost:
        found = await graph.relationships.between(alice, subjects)

    assert len(found) == size
    assert (cost.commands, cost.round_trips) == (4, 1)
    view = graph.visibility.of(alice)
    await view.exclusions(subjects)
    async with counted(graph) as cost:
        assert await graph.relationships.between(alice, subjects, view) == found
    assert (cost.commands, cost.round_trips) == (2, 1)


async def test_no_subjects_cost_nothing(graph: Graph) -> None:
    async with counted(graph) as cost:
        assert await graph.relationships.between(1, []) == []
    assert cost.commands == 0
