"""Windows of one list in one operation share one read and return the same pages as separate reads."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from graph.model import Page
from graph.paging import Window
from resolvers import ids
from resolvers.windows import SharedWindows
from tests.resolvers.conftest import World
from tests.support.graph_worlds import counted

NUMBERS = tuple(range(1, 60))


def page_of(window: Window) -> Page[int]:
    found = [number for number in NUMBERS if window.low < number < window.high]
    found.sort(reverse=window.forward)
    return window.page(found[: window.count + 1])


class Reads:
    """A batch function for pages that records its calls."""

    def __init__(self) -> None:
        self.calls: list[Sequence[tuple[str, Window]]] = []

    async def __call__(self, keys: Sequence[tuple[str, Window]]) -> list[Page[int] | Exception]:
        self.calls.append(keys)
        return [ValueError(owner) if owner == "broken" else page_of(window) for owner, window in keys]


@pytest.mark.parametrize("seed", range(20))
async def test_a_page_is_cut_like_it_would_be_read(seed: int) -> None:
    """This holds in both directions, with bounds."""
    random = Random(seed)  # noqa: S311
    bounds = [(0, 1 << 40), (10, 50), (0, 30), (55, 1 << 40)]
    windows = [
        Window(random.randrange(1, 70), random.random() < 0.5, *random.choice(bounds))
        for _ in range(random.randrange(1, 30))
    ]
    keys = list(dict.fromkeys(("list", window) for window in windows))
    reads = Reads()
    pages = await SharedWindows(reads, Window.cut)(keys)
    assert pages == [page_of(window) for _, window in keys]
    assert len(reads.calls) == 1
    assert len(reads.calls[0]) == len({(window.forward, window.low, window.high) for window in windows})


async def test_calls_of_one_iteration_share_a_read() -> None:
    """Aliases of a field make such calls. A failure affects only its own list."""
    reads = Reads()
    shared = SharedWindows(reads, Window.cut)
    calls = [shared([("list", Window(count, True))]) for count in (3, 9, 5)]
    calls.append(shared([("broken", Window(1, True))]))
    [[three], [nine], [five], [broken]] = await asyncio.gather(*calls)
    assert [three, nine, five] == [page_of(Window(count, True)) for count in (3, 9, 5)]
    assert isinstance(broken, ValueError)
    assert [list(call) for call in reads.calls] == [[("list", Window(9, True)), ("broken", Window(1, True))]]
    await shared([("list", Window(3, True))])
    assert len(reads.calls) == 2


FIELDS = {
    "home": "viewer {{ homeTimeline {{ {} }} }}",
    "user": 'user(by: {{login: "alice"}}) {{ timeline {{ {} }} }}',
    "list": "node(id: $list) {{ ... on UserList {{ timeline {{ {} }} }} }}",
}
WINDOW = "a{at}: entries(first: {first}) {{ pageInfo {{ hasNextPage }} nodes {{ id }} }}"
OTHERS = {
    "notifications": "viewer {{ notifications {{ {} }} }}|a{at}: entries(first: {first}) {{ nodes {{ id }} }}",
    "followers": 'user(by: {{login: "alice"}}) {{ {} }}|a{at}: followers(first: {first}) {{ nodes {{ id }} }}',
    "followers you know": (
        'user(by: {{login: "alice"}}) {{ {} }}|a{at}: followersYouKnow(first: {first}) {{ nodes {{ id }} }}'
    ),
    "muted": "viewer {{ {} }}|a{at}: mutedUsers(first: {first}) {{ nodes {{ id }} }}",
    "liked": "viewer {{ {} }}|a{at}: likedPosts(first: {first}) {{ nodes {{ id }} }}",
}


async def commands_of(world: World, document: str, by: Any, **variables: Any) -> int:
    async with counted(world.graph) as cost:
        answer = await world.ask(document, by, **variables)
        assert answer.errors == []
    return cost.commands


@pytest.mark.counts_reads
@pytest.mark.parametrize(
    "template",
    [*(f"{field}|{WINDOW}" for field in FIELDS.values()), *OTHERS.values()],
    ids=[*FIELDS, *OTHERS],
)
async def test_the_same_connection_with_other_sizes_is_read_once(world: World, template: str) -> None:
    """Eighteen page sizes cost the store as much as the largest one alone."""
    alice, bob, carol = await world.users("alice", "bob", "carol")
    await world.follow(bob, alice, carol)
    await world.follow(carol, alice)
    posts = await world.post(alice, *(f"post {n}" for n in range(30)))
    await world.graph.blocks.mute(bob.id, carol.id)
    for post in posts[:25]:
        await world.graph.likes.like(bob.id, post.id)
        await world.graph.likes.like(alice.id, post.id)
    made = await world.graph.lists.create(bob.id, "some", [alice.id])
    await world.graph.worker().drain()
    frame, _, field = template.partition("|")
    variables = {"list": ids.encode(ids.Kind.LIST, made.id)} if "$list" in frame else {}
    head = "query ($list: ID!) { " if variables else "{ "

    def document(sizes: Sequence[int]) -> str:
        return head + frame.format(" ".join(field.format(at=at, first=first) for at, first in enumerate(sizes))) + " }"

    reader = alice if "notifications" in frame else bob
    await commands_of(world, document([1]), reader, **variables)
    await world.graph.timelines.wait_for_rebuilds()
    one = await commands_of(world, document([30]), reader, **variables)
    many = await commands_of(world, document(range(13, 31)), reader, **variables)
    assert many == one
