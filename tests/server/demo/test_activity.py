"""While the demo runs, its users act, so a visitor sees live updates."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from random import Random

import pytest

from graph import Graph
from graph.feed.updates import Checkpoint
from graph.log.events import Followed, Liked, PostDeleted, PostPublished, Reposted
from server.demo import Demo, activity
from server.demo.activity import Crowd
from server.demo.people import SEVEN
from server.settings import Settings
from tests.server.conftest import serving
from tests.support.graph_worlds import PATIENCE, reached
from tests.support.worlds import settle_small_world


@pytest.fixture
async def people(graph: Graph) -> dict[str, int]:
    """Load a small demo world and return its users."""
    return (await settle_small_world(graph)).people()


@pytest.fixture
async def events(graph: Graph, people: dict[str, int]) -> AsyncIterator[list[object]]:
    """Collect what happens in alice's home timeline."""
    received: list[object] = []
    started = asyncio.Event()

    async def listen() -> None:
        async with aclosing(graph.feed.home(people["alice"])) as updates:
            async for update in updates:
                received.append(update)
                started.set()

    task = asyncio.create_task(listen())
    async with asyncio.timeout(PATIENCE):
        await started.wait()
    yield received
    task.cancel()


async def test_those_act_whom_a_visitor_follows(graph: Graph, people: dict[str, int], events: list[object]) -> None:
    """Posts, reposts and deletions reach the visitor; follows, likes and replies are events of other streams."""
    head = await graph.log.last()
    crowd = await Crowd.gather(graph, Random(1))  # noqa: S311 - reproducible
    for _ in range(90):
        await crowd.act()
    followed = await graph.follows.followed_by(people["alice"])
    done = [event.body for event in (await graph.log.after(head, await graph.log.last(), 100))[0]]
    kinds = {type(body) for body in done}
    assert kinds == {PostPublished, PostDeleted, Reposted, Liked, Followed}
    replies = [body for body in done if isinstance(body, PostPublished) and body.reply_to]
    assert people["alice"] in {body.reply_to_author for body in replies}
    for body in done:
        if isinstance(body, PostPublished):
            assert body.author in followed
        if isinstance(body, Followed):
            assert body.followee == people["alice"]
    async with asyncio.timeout(PATIENCE):
        while len([event for event in events if not isinstance(event, Checkpoint)]) < len(done) // 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_visitor_does_not_act(graph: Graph, people: dict[str, int], events: list[object]) -> None:
    """Nothing is published on behalf of a user whose home timeline is watched, or of users who signed up."""
    newcomer = await graph.users.sign_up("newcomer", "correct horse")
    head = await graph.log.last()
    crowd = await Crowd.gather(graph, Random(2))  # noqa: S311 - reproducible
    for _ in range(40):
        await crowd.act()
    for event in (await graph.log.after(head, await graph.log.last(), 100))[0]:
        match event.body:
            case PostPublished(user) | PostDeleted(user) | Followed(user) | Liked(user) | Reposted(user):
                assert user not in (people["alice"], newcomer.id)


async def test_a_lively_demo_publishes_while_somebody_watches(
    settings: Settings, graph: Graph, people: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quiet demo does not."""
    monkeypatch.setattr(activity, "BUSY_SECONDS", (0.02, 0.02))
    monkeypatch.setattr(activity, "LOOK_SECONDS", 0.01)
    persons = tuple(role.person for role in SEVEN)
    query = "subscription { homeTimeline { __typename } }"
    for lively in (True, False):
        async with serving(settings, graph, demo=Demo(persons, lively=lively)) as api:
            token = (await api.client.get("/playground/session.json?login=alice")).json()["token"]
            async with api.socket(token) as socket:
                await socket.subscribe("1", query)
                await socket.receive()
                before = await graph.log.last()
                if lively:
                    await reached(graph.log.last, before + 1)
                else:
                    await asyncio.sleep(0.2)
                    assert await graph.log.last() == before
