"""Failovers of the log's shard lose a post or a list and its key. The client repeats the request, and a worker repairs.

The post or list is in other shards, and perhaps in the archive. In any order of the later steps, one of them remains.
"""

from dataclasses import dataclass, field, replace
from itertools import product

import pytest

from graph import Graph
from graph.archive.rows import POST
from graph.visibility.views import SYSTEM
from tests.graph.archiver.failovers import Failover
from tests.graph.archiver.world import ArchiveWorld
from tests.support.exploring import also_at_length
from tests.support.graph_worlds import PASSWORD, home, own, posts

KEY, TEXT = "key of the client", "once"
STEPS = ("repeat", "archive", "repair")
USUAL = [("repeat", "archive"), ("archive", "repeat"), ("repair", "repeat")]
"""The client is first, or the archiver, or a repair."""
TWICE: list[tuple[str, ...]] = [
    *(("repeat", "fail", "repeat"), ("archive", "fail", "repeat"), ("repair", "fail", "archive")),
    ("repeat", "archive", "fail", "archive"),
]
"""The same, with a second failover; in the last one, the archive holds two lost posts of the request."""


@dataclass
class Aftermath:
    """What happens after the failover: `told` are the ids that the client received."""

    world: ArchiveWorld
    told: list[int] = field(default_factory=list)

    async def repeat(self) -> None:
        """The client repeats its request."""
        post = await self.world.graph.posts.publish(self.world.bob, TEXT, idempotency_key=KEY)
        self.told.append(post.id)

    async def archive(self) -> None:
        """The worker projects and archives, and recovers what the archive had."""
        await self.world.archive()

    async def repair(self) -> None:
        """A worker compares the store with the archive, or an operator does."""
        graph = self.world.graph
        await posts(graph, self.world.alice, "a later event")
        await self.world.archive()
        await replace(graph.repair(), timeout=0).run(correct=True)

    async def check(self) -> None:
        """Assert that there is one post, and that its id is the one that the client received."""
        for _ in range(2):
            await self.repair()
        await self.repeat()
        graph = self.world.graph
        [post] = set(self.told)
        assert post in await own(graph, self.world.bob)
        assert await live(graph, self.world) == [post]
        assert not (await replace(graph.repair(), timeout=0).run(correct=False)).found


@dataclass
class ListAftermath(Aftermath):
    """What happens after the failover that lost a list."""

    async def repeat(self) -> None:
        self.told.append((await self.world.graph.lists.create(self.world.bob, TEXT, idempotency_key=KEY)).id)

    async def check(self) -> None:
        """Assert that there is one list, and that its id is the one that the client received."""
        for _ in range(2):
            await self.repair()
        await self.repeat()
        graph = self.world.graph
        [created] = set(self.told)
        assert [each.id for each in await graph.lists.of_user(self.world.bob)] == [created]
        assert not (await replace(graph.repair(), timeout=0).run(correct=False)).found


async def live(graph: Graph, world: ArchiveWorld) -> list[int]:
    """Return the posts with the text on the author's timeline; home timelines and the archive must have the same."""
    found = [post for post in await own(graph, world.bob) if await text_of(graph, post) == TEXT]
    assert [post for post in await home(graph, world.alice) if await text_of(graph, post) == TEXT] == found
    rows = [row.number for row in await world.rows() if row.kind == POST and TEXT in (row.body or "")]
    assert rows == found
    return found


async def text_of(graph: Graph, post: int) -> str | None:
    """Return the text of a post."""
    [found] = await graph.posts.get_many(SYSTEM, [post])
    return found and found.text


async def lose(world: ArchiveWorld, kind: type[Aftermath] = Aftermath, *, is_archived: bool) -> None:
    """Create what a failover of the log's shard loses after it was projected, and archived or not."""
    await world.archive()
    failover = await Failover(world).begin()
    await kind(world).repeat()
    await world.graph.worker().drain()
    if is_archived:
        await world.archive()
    world.graph = await failover.happen()


@pytest.mark.parametrize("is_deleted", [False, True], ids=["account", "post"])
async def test_the_author_leaves_before_the_recovery(world: ArchiveWorld, is_deleted: bool) -> None:
    """The author deletes the lost post or the account. The recovery deletes the post too, and archives the rest."""
    await world.archive()
    failover = await Failover(world).begin()
    lost = await world.graph.posts.publish(world.bob, TEXT, idempotency_key=KEY)
    await world.archive()
    world.graph = graph = await failover.happen()
    await graph.posts.publish(world.bob, TEXT, idempotency_key=KEY)
    if is_deleted:
        await graph.posts.delete(world.bob, lost.id)
    else:
        await graph.account_deletion.delete(world.bob, PASSWORD)
    await world.archive()

    await posts(graph, world.alice, "a later event")
    await world.archive()

    assert (await graph.archive.state()).watermark == await graph.log.last()
    assert await graph.posts.get_many(SYSTEM, [lost.id]) == [None]


def others(count: int) -> list[tuple[str, ...]]:
    """Return all other orders of this many steps."""
    return [steps for steps in product(STEPS, repeat=count) if steps not in USUAL]


@pytest.mark.parametrize("is_archived", [False, True], ids=["not archived", "archived"])
@pytest.mark.parametrize("steps", also_at_length(USUAL, others(2)), ids="-".join)
async def test_a_request_publishes_one_post(world: ArchiveWorld, steps: tuple[str, ...], is_archived: bool) -> None:
    """The client gets the id of the remaining post, however often it repeats its request, and whenever it begins to."""
    await lose(world, is_archived=is_archived)
    aftermath = Aftermath(world)
    for step in steps:
        await getattr(aftermath, step)()
    await aftermath.check()


@pytest.mark.parametrize("is_archived", [False, True], ids=["not archived", "archived"])
@pytest.mark.parametrize("steps", also_at_length(USUAL, others(2)), ids="-".join)
async def test_a_request_creates_one_list(world: ArchiveWorld, steps: tuple[str, ...], is_archived: bool) -> None:
    """A lost list that is not archived is removed, as without a key, and the client creates it again."""
    await lose(world, ListAftermath, is_archived=is_archived)
    aftermath = ListAftermath(world)
    for step in steps:
        await getattr(aftermath, step)()
    await aftermath.check()


def orders(before: int, after: int) -> list[tuple[str, ...]]:
    """Return all other orders of this many steps before and after the second failover."""
    both = product(product(STEPS, repeat=before), product(STEPS, repeat=after))
    return [steps for earlier, later in both if (steps := (*earlier, "fail", *later)) not in TWICE]


@pytest.mark.parametrize("is_archived", [False, True], ids=["not archived", "archived"])
@pytest.mark.parametrize(
    "steps", also_at_length(TWICE, [*orders(1, 1), *orders(2, 1), *orders(1, 2), *orders(2, 2)]), ids="-".join
)
async def test_a_request_publishes_one_post_in_spite_of_two_failovers(
    world: ArchiveWorld, steps: tuple[str, ...], is_archived: bool
) -> None:
    """The second failover loses what happened in the log since the first, such as an acknowledged repetition.

    The records of other shards and the archive remain.
    """
    await lose(world, is_archived=is_archived)
    failover, aftermath = await Failover(world).begin(), Aftermath(world)
    for step in steps:
        if step == "fail":
            world.graph = await failover.happen()
            aftermath.told.clear()
        else:
            await getattr(aftermath, step)()
    await aftermath.check()
