"""The example operations run unchanged in the demo world and return useful data."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, parse

from executor import Executor, Operation
from graph import Graph
from graph.model import Session
from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from server.demo.world import World
from tests.support.worlds import settle_small_world

EXAMPLES = {path.stem: path for path in (Path(__file__).parents[2] / "examples").glob("*.graphql")}
REQUIRED = {"follow": {"userIds": [ids.encode(ids.Kind.USER, 1)]}}


class Alice:
    """Runs examples as alice in a small demo world."""

    def __init__(self, graph: Graph, world: World, session: Session) -> None:
        self.graph = graph
        self.people = world.people()
        self._viewer = Viewer(session.user, session.id, session.expires_at)

    def context(self) -> Context:
        """Return the context of a new request."""
        return Context(self.graph, self._viewer, lambda session: f"token of {session.user}")

    async def run(self, example: str, **variables: Any) -> dict[str, Any]:
        """Execute a query or mutation and return its data."""
        document = EXAMPLES[example].read_text("utf-8")
        result = await schema.execute(document, variables, self.context())
        assert result.errors is None
        assert result.data is not None
        return result.data

    async def subscribe(self, example: str, **variables: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Run a subscription and yield the data of its events."""
        document = EXAMPLES[example].read_text("utf-8")
        async with aclosing(await schema.subscribe(document, variables, self.context())) as results:
            async for result in results:
                assert result.errors is None
                assert result.data is not None
                yield result.data


@pytest.fixture
async def alice(graph: Graph) -> Alice:
    """Load the demo world and start a session of alice."""
    world = await settle_small_world(graph)
    return Alice(graph, world, await graph.sessions.start(world.people()["alice"]))


def test_every_example_is_run_by_a_test_here() -> None:
    source = Path(__file__).read_text("utf-8")
    assert not [name for name in EXAMPLES if f'"{name}"' not in source]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_one_named_operation_with_a_comment(name: str) -> None:
    """Logs and the playground show the name."""
    text = EXAMPLES[name].read_text("utf-8")
    assert text.startswith("# ")
    [operation] = parse(text).definitions
    assert isinstance(operation, OperationDefinitionNode)
    assert operation.name is not None


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_breadth_first(name: str) -> None:
    """It never falls back to ordinary execution."""
    prepared = Executor(schema._schema).prepare(parse(EXAMPLES[name].read_text("utf-8")), REQUIRED.get(name))
    assert isinstance(prepared, Operation)


async def test_home(alice: Alice) -> None:
    """The end cursor leads to the next page."""
    posts = (await alice.run("home"))["viewer"]["homeTimeline"]["posts"]
    assert len(posts["edges"]) == 30
    assert posts["pageInfo"]["hasNextPage"]
    states = {edge["node"]["author"]["relationship"]["state"] for edge in posts["edges"]}
    assert states <= {"SELF", "FOLLOWING", "MUTUAL"}
    more = (await alice.run("home", after=posts["pageInfo"]["endCursor"]))["viewer"]["homeTimeline"]["posts"]
    assert more["edges"][0]["node"]["createdAt"] < posts["edges"][-1]["node"]["createdAt"]


async def test_followers_with_relations(alice: Alice) -> None:
    """Bob's newest followers have every relationship to alice."""
    user = (await alice.run("followers-with-relations"))["user"]
    assert user["name"] == "Bob"
    shown = [(edge["node"]["login"], edge["node"]["relationship"]["state"]) for edge in user["followers"]["edges"]]
    assert shown[:5] == [
        ("alice", "SELF"),
        ("wei", "MUTUAL"),
        ("carol", "FOLLOWING"),
        ("erin", "FOLLOWED_BY"),
        ("xiaoming", "NONE"),
    ]


async def test_profile(alice: Alice) -> None:
    user = (await alice.run("profile"))["user"]
    assert (user["login"], user["name"], user["relationship"]["state"]) == ("wei", "伟", "MUTUAL")
    assert user["timeline"]["posts"]["edges"]
    assert user["following"]["totalCount"] == user["followingCount"]


async def test_whats_new(alice: Alice) -> None:
    """The page contains exactly the posts that are newer than the cursor."""
    posts = (await alice.run("home"))["viewer"]["homeTimeline"]["posts"]
    third = posts["edges"][2]["cursor"]
    newer = (await alice.run("whats-new", before=third))["viewer"]["homeTimeline"]["posts"]
    assert [edge["cursor"] for edge in newer["edges"]] == [edge["cursor"] for edge in posts["edges"][:2]]
    assert (await alice.run("whats-new"))["viewer"]["homeTimeline"]["posts"]["edges"]


async def test_log_in(alice: Alice) -> None:
    """The default variables log alice in."""
    session = (await alice.run("log-in"))["logIn"]["session"]
    assert session["user"]["login"] == "alice"
    assert session["token"]


async def test_publish(alice: Alice) -> None:
    published = (await alice.run("publish"))["publishPost"]
    assert published["userErrors"] == []
    top = (await alice.run("home"))["viewer"]["homeTimeline"]["posts"]["edges"][0]
    assert top["cursor"] == published["postEdge"]["cursor"]


async def test_follow(alice: Alice) -> None:
    """Each id has an outcome, and the relationship is that after the change."""
    followees = [ids.encode(ids.Kind.USER, alice.people[login]) for login in ("xiaoming", "bob")]
    answer = (await alice.run("follow", userIds=followees))["follow"]
    assert [result["outcome"] for result in answer["results"]] == ["FOLLOWED", "ALREADY_FOLLOWING"]
    assert answer["results"][0]["user"]["relationship"]["state"] == "FOLLOWING"


async def test_live(alice: Alice) -> None:
    """From the page's live cursor, posts published before the subscription come first, then new ones."""
    page = (await alice.run("home"))["viewer"]["homeTimeline"]["posts"]
    await alice.graph.posts.publish(alice.people["bob"], "in between")
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(10), aclosing(alice.subscribe("live", after=page["liveCursor"])) as live:
        async for event in live:
            events.append(event["homeTimeline"])
            if len(events) == 2:
                await alice.run("publish", text="just now")
            if len(events) == 3:
                break
    assert [event["__typename"] for event in events] == ["Checkpoint", "PostAdded", "PostAdded"]
    assert [event["edge"]["node"]["text"] for event in events[1:]] == ["in between", "just now"]


async def test_events(alice: Alice) -> None:
    """Posts with one of the keywords and their deletions match."""
    bob = alice.people["bob"]
    received = []
    async with asyncio.timeout(10), aclosing(alice.subscribe("events")) as stream:
        async for event in stream:
            received.append(event["events"])
            if len(received) == 1:
                await alice.graph.posts.publish(bob, "tea")
                post = await alice.graph.posts.publish(bob, "Coffee, then #Music")
            if len(received) == 2:
                await alice.graph.posts.delete(bob, post.id)
            if len(received) == 3:
                break
    assert [event["__typename"] for event in received] == ["Checkpoint", "PostPublished", "PostDeleted"]
    assert received[1]["post"]["text"] == "Coffee, then #Music"
    assert received[2]["postId"] == received[1]["post"]["id"]
