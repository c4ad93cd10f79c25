"""Tests of repairs during normal use, and of interrupted repairs."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.model import Permission
from graph.repair import defects
from graph.repair.repair import RepairReport
from graph.store.commands import Command, script
from server.embedded import EmbeddedStore
from tests.graph.repair.broken import (
    RepairWorld,
    Snapshot,
    check,
    opened,
    repair,
)
from tests.graph.repair.notification_damages import DAMAGES
from tests.support.graph_worlds import background, cached, posts
from tests.support.stores import Crashed, Death


class RandomActivity:
    """Users who perform random actions, one at a time per user, all users concurrently."""

    def __init__(self, world: RepairWorld, seed: int) -> None:
        self.world = world
        self.random = random.Random(seed)  # noqa: S311 - reproducible

    async def run(self, graph: Graph, user: int, enough: Callable[[], bool]) -> None:
        """Publish, delete, follow, unfollow and read as one user, and update the expected state of the world."""
        world, others = self.world, [other for other in self.world.ids.values() if other != user]
        while not enough():
            other = self.random.choice(others)
            match self.random.choices(["post", "delete", "toggle follow", "read", "hibernate"], [8, 3, 5, 5, 1])[0]:
                case "post" if len(world.posts[user]) < 30:
                    world.posts[user] += await posts(graph, user, "a post")
                case "delete" if world.posts[user]:
                    which = self.random.randrange(len(world.posts[user]))
                    await graph.posts.delete(user, world.posts[user].pop(which))
                case "toggle follow" if other in world.follows[user]:
                    await graph.follows.unfollow(user, [other])
                    world.follows[user].discard(other)
                case "toggle follow":
                    await graph.follows.follow(user, [other])
                    world.follows[user].add(other)
                case "hibernate":
                    await world.raw.unlink(keys.home(other))
                case _:
                    await cached(graph, user)


async def repair_forever(graph: Graph, reports: list[RepairReport], *, correct: bool) -> None:
    """Run repairs or checks without pauses."""
    while True:
        reports.append(await graph.repair().run(correct=correct))


async def test_repairs_of_a_busy_healthy_system_find_nothing(world: RepairWorld) -> None:
    """Checks and repairs run while two processes, a worker and an archiver are busy."""
    reports: list[RepairReport] = []
    url = world.graph.store.url
    async with (
        opened(url) as other,
        opened(url) as workers,
        background(workers.worker().run()),
        background(repair_forever(other, reports, correct=False)),
        background(repair_forever(workers, reports, correct=True)),
    ):
        activity = RandomActivity(world, random.randrange(1000))  # noqa: S311 - reproducible
        graphs = (world.graph, other)
        users = [
            activity.run(graphs[n % 2], user, lambda: len(reports) > 5) for n, user in enumerate(world.ids.values())
        ]
        await asyncio.gather(*users)
    await world.drain()

    for report in reports:
        assert report.clean, (report.found, report.examples)
    assert (await check(world.graph)).clean
    await world.check_pages()


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_repair_that_crashes_at_any_step_is_finished_by_the_next(
    world_and_snapshot: tuple[RepairWorld, Snapshot],
    running_store: EmbeddedStore,
    raw: Redis,
    calls: Iterator[int],
    late: bool,
) -> None:
    """The process crashes before or after an exchange with the store."""
    for call in calls:
        world_and_snapshot[1].restore(running_store.url)
        async with opened(running_store.url) as graph, opened(running_store.url) as crashing:
            world = world_and_snapshot[0].copy(graph, raw)
            for damage in SOME_OF_EACH:
                await DAMAGES[damage][0](world)
            death = Death(crashing.store, STRIDE * call, after=late)
            with contextlib.suppress(Crashed):
                await repair(crashing)

            await repair(graph)

            assert (await check(graph)).clean
            await world.check_pages()
        if not death.happened:
            break
    assert STRIDE * call > 30


STRIDE = 4
"""The number of exchanges between two steps to crash at: a repair has many steps."""
SOME_OF_EACH = (
    "a_follower_is_lost",
    "an_unfollow_is_lost",
    "a_timeline_with_archived_posts_is_lost",
    "a_record_is_lost",
    "a_deleted_post_has_a_record",
    "a_count_is_wrong",
    "a_cache_has_a_mark_for_an_author_who_is_not_followed",
    "a_profile_is_lost",
)


async def test_a_difference_counts_if_it_is_found_twice(world: RepairWorld) -> None:
    """Between the two comparisons, one difference disappears and another one for the same author appears."""
    first, second = world.posts[world.carol]
    record: dict[Any, Any] = await world.raw.hgetall(keys.post(first))
    await world.raw.delete(keys.post(first))

    async def swap(commands: Sequence[Command]) -> None:
        if ("HGETALL", keys.post(first)) in commands and not await world.raw.exists(keys.post(first)):
            await world.raw.hset(keys.post(first), mapping=record)
            await world.raw.delete(keys.post(second))

    async with opened(world.graph.store.url) as checking:
        checking.store.after.append(swap)  # type: ignore[attr-defined]
        report = await check(checking)

    assert report.clean, report.examples
    assert (await check(world.graph)).found == {defects.RECORD_WRONG: 1}


Change = Callable[[RepairWorld], Any]
CHANGES: dict[str, tuple[str, str, Change]] = {
    "name": (
        "a_profile_has_lost_its_name",
        "repair_fields",
        lambda w: w.graph.users.update_profile(w.carol, name="Newer"),
    ),
    "permission": (
        "a_permission_is_lost",
        "repair_fields",
        lambda w: w.graph.users.revoke(w.star, Permission.FIREHOSE),
    ),
    "follow": (
        "a_follow_has_a_wrong_number",
        "repair_follow",
        lambda w: w.graph.follows.unfollow(w.alice, [w.bob]),
    ),
    "block": (
        "a_follow_is_lost",
        "repair_follow",
        lambda w: w.graph.blocks.block(w.bob, w.alice),
    ),
    "record": (
        "a_record_has_a_wrong_text",
        "repair_fields",
        lambda w: w.graph.posts.delete(w.carol, w.posts[w.carol][0]),
    ),
    "listing": (
        "a_post_is_not_listed",
        "repair_element",
        lambda w: w.graph.posts.delete(w.carol, w.posts[w.carol][0]),
    ),
    "floor": (
        "a_timeline_is_lost",
        "repair_floor",
        lambda w: w.raw.zadd(keys.posts(w.carol), {"f": w.posts[w.carol][1]}),
    ),
    "count": (
        "a_count_is_lost",
        "set_cold",
        lambda w: w.graph.posts.delete(w.bob, w.posts[w.bob][2]),
    ),
}
"""A damage, the script that corrects it, and a newer change of the same element."""


@pytest.mark.parametrize("change", CHANGES)
async def test_a_correction_does_not_overwrite_a_newer_change(world: RepairWorld, change: str) -> None:
    """Another process changes the element between the second comparison and the correction."""
    damage, correction, act = CHANGES[change]
    await DAMAGES[damage][0](world)
    sha = script(correction).sha
    changed: list[dict[bytes, Any]] = []

    async with opened(world.graph.store.url) as repairing:

        async def change_first(commands: Sequence[Command]) -> None:
            if not changed and any(sha in command for command in commands):
                await act(world)
                changed.append(world.content()[0])

        repairing.store.before.append(change_first)  # type: ignore[attr-defined]
        report = await repair(repairing)

    assert changed
    assert report.changed == report.found.total() - report.corrected.total() > 0
    found = world.content()[0]
    differing = {key for key in found if found[key] != changed[0].get(key)}
    assert not {key for key in differing if not key.startswith((b"home:", b"{log}"))}  # the repair is an event
    await world.drain()
    await repair(world.graph)
    assert (await check(world.graph)).clean
