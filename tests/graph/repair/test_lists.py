"""Repairs of lists of users, their names and their members."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from graph import keys
from graph.repair import defects
from graph.repair.lists import ListComparison
from graph.repair.scope import Scope
from tests.graph.repair.broken import RepairWorld, check, kinds_found, opened, repair, worlds
from tests.support.graph_worlds import newest


@dataclass
class Lists:
    """A world in which alice has a list of bob and carol, and has deleted another list."""

    world: RepairWorld
    friends: int
    gone: int

    async def shown(self) -> object:
        """Return the lists that alice sees."""
        graph, alice = self.world.graph, self.world.alice
        pages = await graph.lists.members(graph.visibility.of(alice), alice, [self.friends, self.gone], newest(9))
        return await graph.lists.of_user(alice), [[each.user for each in page.items] for page in pages]


async def listed(world: RepairWorld) -> Lists:
    """Create two lists for alice, change one and delete the other."""
    graph, alice = world.graph, world.alice
    friends = await graph.lists.create(alice, "friends", [world.bob, world.dave])
    gone = await graph.lists.create(alice, "gone", [world.bob])
    await graph.lists.update(alice, friends.id, name="others", added=[world.carol], removed=[world.dave])
    await graph.lists.delete(alice, gone.id)
    return Lists(world, friends.id, gone.id)


@pytest.fixture
async def lists(world: RepairWorld) -> Lists:
    """Add lists to the small world."""
    lists = await listed(world)
    await world.drain()
    return lists


Damage = Callable[[RepairWorld, Lists], Awaitable[object]]
DAMAGES: dict[str, Damage] = {
    "a list is lost": lambda w, lists: w.raw.zrem(keys.lists(w.alice), lists.friends),
    "all lists are lost": lambda w, _: w.raw.delete(keys.lists(w.alice)),
    "a list has no event": lambda w, _: w.raw.zadd(keys.lists(w.bob), {"7": 7}),
    "a deleted list is there": lambda w, lists: w.raw.zadd(keys.lists(w.alice), {str(lists.gone): lists.gone}),
    "a name is lost": lambda w, _: w.raw.delete(keys.list_names(w.alice)),
    "a name is wrong": lambda w, lists: w.raw.hset(keys.list_names(w.alice), str(lists.friends), "x"),
    "a deleted list has a name": lambda w, lists: w.raw.hset(keys.list_names(w.alice), str(lists.gone), "x"),
    "a member is lost": lambda w, lists: w.raw.zrem(keys.list_members(w.alice, lists.friends), w.carol),
    "all members are lost": lambda w, lists: w.raw.delete(keys.list_members(w.alice, lists.friends)),
    "a member has no event": lambda w, lists: w.raw.zadd(keys.list_members(w.alice, lists.friends), {str(w.star): 1}),
    "a removed member is there": lambda w, lists: w.raw.zadd(
        keys.list_members(w.alice, lists.friends), {str(w.dave): lists.friends}
    ),
    "a deleted list has a member": lambda w, lists: w.raw.zadd(keys.list_members(w.alice, lists.gone), {"7": 7}),
}


async def test_a_world_with_lists_is_right(lists: Lists) -> None:
    report = await check(lists.world.graph)
    assert report.clean, report.examples


async def test_every_damage_is_found_and_corrected(store_url: str, raw: Redis) -> None:
    """Each kind of damage is done to a separate world."""
    async with opened(store_url) as graph:
        damaged = {
            damage: await listed(world)
            for damage, world in zip(DAMAGES, await worlds(graph, raw, len(DAMAGES)), strict=True)
        }
        owners = {number: damage for damage, lists in damaged.items() for number in lists.world.numbers()}
        before = [await lists.shown() for lists in damaged.values()]
        await next(iter(damaged.values())).world.drain()
        for damage, lists in damaged.items():
            await DAMAGES[damage](lists.world, lists)

        found = await kinds_found(graph, owners, correct=False)
        assert {damage for damage in DAMAGES if defects.LIST_WRONG in found[damage]} == {*DAMAGES}
        await kinds_found(graph, owners, correct=True)
        assert (await check(graph)).found.total() == 0
        assert [await lists.shown() for lists in damaged.values()] == before


async def test_changes_after_the_comparison_are_not_undone(lists: Lists) -> None:
    """The compared archive shows members, names and lists that later events have changed."""
    graph, alice = lists.world.graph, lists.world.alice
    up_to = await graph.log.last()
    await graph.lists.update(alice, lists.friends, name="new", added=[lists.world.dave], removed=[lists.world.carol])
    scope = Scope(graph.store, graph.archive, graph.binding, graph.commit, graph.tuning, up_to=up_to)
    assert await ListComparison(scope).compare([alice]) == []
    await graph.lists.delete(alice, lists.friends)
    await graph.lists.create(alice, "another", [lists.world.bob])
    assert await ListComparison(scope).compare([alice]) == []


async def test_a_corrected_removal_is_not_undone_by_a_late_event(lists: Lists) -> None:
    """The tombstone is written again, with the number of the removal."""
    world, name = lists.world, keys.list_members(lists.world.alice, lists.friends)
    removal = await world.raw.zscore(keys.gone(name), str(world.dave))
    await world.raw.zrem(keys.gone(name), world.dave)
    await world.raw.zadd(name, {str(world.dave): lists.friends})

    await repair(world.graph)

    assert removal is not None
    assert await world.raw.zscore(keys.gone(name), str(world.dave)) == removal
    assert await world.raw.zscore(name, str(world.dave)) is None
