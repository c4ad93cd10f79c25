"""Fields that are declared independent of the viewer: their values are the same for every viewer, and without one.

The documents are generated from the schema, so that new declarations are checked, too. The alias of each field names
its type.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import orjson
import pytest
from graphql import (
    DocumentNode,
    GraphQLNamedType,
    GraphQLObjectType,
    get_named_type,
    is_abstract_type,
    parse,
)

from executor import Executor, Operation
from executor.declarations import Declarations
from graph import Graph
from graph.errors import ViewerNeeded
from graph.feed import updates
from graph.model import Location, Post, Repost
from resolvers.context import Context
from resolvers.shared_context import SharedContext
from schema import schema
from server.operations.live_events import LiveEvents
from tests.resolvers.conftest import World, errors_of
from tests.support.graphs import CHEAP, open_graph

SCHEMA = schema._schema
DECLARATIONS = Declarations(SCHEMA)
LOGINS = ("alice", "bob", "carol", "dave")
FILTER = '(filter: { keywords: ["x"] })'
SUBSCRIPTIONS = {
    "homeTimeline": "",
    "timeline": '(timelineId: "x")',
    "thread": '(postId: "x")',
    "events": FILTER,
    "notifications": "",
}


def selection(type_: GraphQLNamedType, passed: Sequence[str] = (), *, leaves_open: bool = False) -> str:
    """Return the selection of everything independent below a type, each type at most twice on a path.

    With `leaves_open`, fields that depend on the viewer are also selected, with the independent fields below them.
    """
    if is_abstract_type(type_):
        possible = SCHEMA.get_possible_types(type_)
        parts = [f"... on {each.name} {{ {selection(each, passed, leaves_open=leaves_open)} }}" for each in possible]
        return " ".join(["__typename", *parts])
    assert isinstance(type_, GraphQLObjectType)
    words = ["__typename"]
    for name, field in type_.fields.items():
        is_independent = DECLARATIONS.of(field).is_independent
        target = get_named_type(field.type)
        below = ""
        if not is_independent and not leaves_open:
            continue
        if is_abstract_type(target) or isinstance(target, GraphQLObjectType):
            if [*passed, type_.name].count(target.name) > 1:
                continue
            below = f" {{ {selection(target, (*passed, type_.name), leaves_open=leaves_open and is_independent)} }}"
        words.append(f"{type_.name}_{name}: {name}{'(first: 9)' if 'first' in field.args else ''}{below}")
    return " ".join(words)


def document(root: str, *, leaves_open: bool = False) -> DocumentNode:
    """Return a subscription that selects all independent fields of its events, and perhaps others: see `selection`."""
    assert SCHEMA.subscription_type
    target = get_named_type(SCHEMA.subscription_type.fields[root].type)
    return parse(f"subscription {{ {root}{SUBSCRIPTIONS[root]} {{ {selection(target, leaves_open=leaves_open)} }} }}")


def declared() -> set[str]:
    """Return all fields of the schema whose resolvers are declared independent."""
    types = [each for each in SCHEMA.type_map.values() if isinstance(each, GraphQLObjectType)]
    return {
        f"{type_.name}_{name}"
        for type_ in types
        for name, field in type_.fields.items()
        if DECLARATIONS.of(field).own.get("independent")
    }


def met(value: Any) -> Iterator[str]:
    """Yield the fields that have a value."""
    for each in value if isinstance(value, list) else []:
        yield from met(each)
    if isinstance(value, dict):
        for name, each in value.items():
            if each is not None:
                yield name
                yield from met(each)


def added(item: Post) -> updates.ItemAdded:
    """Return the event that adds a post or a repost."""
    if isinstance(item, Repost):
        return updates.RepostAdded(item.id, item, item.repost_of_author or 0)
    return updates.PostAdded(item.id, item)


def events_of(posts: Sequence[Post], users: Sequence[int]) -> dict[str, list[Any]]:
    """Return events of all types, by subscription. The last post is a repost."""
    user, other = users[:2]
    first, last = posts[0], posts[-1]
    items = [
        *map(added, posts),
        updates.PostRemoved(first.id, first.id, first.author),
        updates.RepostRemoved(last.id, last.id, last.author),
    ]
    return {
        "homeTimeline": [
            *items,
            *(kind(first.id, user) for kind in (updates.AuthorAdded, updates.AuthorRemoved, updates.AuthorHidden)),
        ],
        "timeline": [*items, updates.TimelineChanged(first.id)],
        "thread": [
            *(updates.ReplyAdded(post.id, post) for post in posts if not isinstance(post, Repost)),
            *(updates.PostChanged(post.id - 1, post.id) for post in posts if not isinstance(post, Repost)),
            updates.PostRemoved(first.id, first.id, first.author),
        ],
        "events": [
            *items,
            *(kind(first.id, user, other) for kind in (updates.UserFollowed, updates.UserUnfollowed)),
        ],
        "notifications": [
            updates.NotificationsChanged(first.id),
            updates.NotificationAdded(first.id, cast(Any, None)),
            updates.Checkpoint(first.id, datetime.now(UTC)),
            updates.Gap(first.id, datetime.now(UTC), updates.GapReason.SLOW_CONSUMER),
        ],
    }


@pytest.fixture
async def world(store_url: str, graph: Graph) -> AsyncIterator[World]:
    """Return a world of a server that shows pictures from a host."""
    own = await open_graph(store_url, replace(CHEAP, media_hosts=frozenset({"example.org"})))
    yield World(own)
    await own.close()


@pytest.fixture
async def events(world: World) -> dict[str, list[Any]]:
    """Return events among users who follow, mute, block, answer, quote, repost, like and mention each other."""
    users = alice, bob, carol, dave = await world.users(*LOGINS)
    graph, posts = world.graph, []
    for user in users:
        await world.follow(user, *(other for other in users if other is not user))
        text = "for @alice, @bob, @carol and @dave, see https://example.com/#x #rain"
        posts.append(await graph.posts.publish(user.id, text, location=Location(52.5, 13.4), platform="Web"))
        await graph.users.update_profile(user.id, avatar_url="https://example.org/a.png")
    target = posts[1].id
    posts.append(await graph.posts.publish(carol.id, "answer for @bob", reply_to=target, quote_of=target))
    posts += [await graph.reposts.repost(graph.visibility.of(user.id), user.id, target) for user in (alice, dave)]
    for user in users:
        await graph.likes.like(user.id, target)
    await graph.blocks.block(alice.id, bob.id)
    await graph.blocks.mute(alice.id, carol.id)
    await graph.blocks.block(carol.id, alice.id)
    await graph.moderation.suspend(dave.id)
    await graph.worker().drain()
    return events_of(posts, [user.id for user in users[1:]])


async def test_independent_fields_are_the_same_for_every_viewer(world: World, events: dict[str, list[Any]]) -> None:
    """This holds for viewers who block, mute or are blocked, for anonymous clients and for shared executions."""
    found = set[str]()
    executor = Executor(SCHEMA)
    alice, bob = [await world.graph.users.get_many([id_]) for id_ in await ids_of(world, "alice", "bob")]
    for root, given in events.items():
        operation = executor.prepare(document(root), {})
        assert isinstance(operation, Operation)
        assert operation.is_independent
        for event in given:
            shared = await operation.run(event, SharedContext(world.graph))
            assert errors_of(shared.errors) == []
            for user in (*alice, *bob, None):
                context = Context(world.graph, await world.viewer(user), str)
                own = await operation.run(event, context)
                assert own.data == shared.data
            found |= {*met(shared.data)}
    assert declared() - found == {
        "Relationship_id",
        "Viewer_id",
        "RepostEdge_cursor",
        "RepostEdge_node",
    }, "the walk meets every declaration but those of the next test, and of what no event has"


async def test_open_runs_give_each_viewer_what_it_gets_alone(world: World, events: dict[str, list[Any]]) -> None:
    """All fields that events reach are compared, for viewers with blocks and mutes and for anonymous clients."""
    found = set[str]()
    users = await world.graph.users.get_many(await ids_of(world, "alice", "bob", "carol"))
    viewers = [await world.viewer(user) for user in (*users, None)]
    for root in ("homeTimeline", "timeline", "thread", "events"):
        operation = Executor(SCHEMA).prepare(document(root, leaves_open=True), {})
        assert isinstance(operation, Operation)
        assert (operation.is_independent, operation.can_leave_open) == (False, True)
        group = LiveEvents().join(operation, world.graph)
        assert group is not None
        for event in events[root]:
            outcomes = await group.execute(event, [Context(world.graph, viewer, str) for viewer in viewers])
            for viewer, outcome in zip(viewers, outcomes, strict=False):
                own = await operation.run(event, Context(world.graph, viewer, str))
                assert outcome == orjson.dumps({"data": own.data})
                found |= {*met(own.data)}
    assert {
        "Relationship_id",
        "Post_quotedPost",
        "Post_viewerHasLiked",
        "Post_likes",
        "MentionEntity_user",
        "Repost_post",
        "PostChanged_post",
        "PostEdge_cursor",
        "PostEdge_node",
        "RepostEdge_cursor",
        "RepostEdge_node",
    } - found == set()


async def ids_of(world: World, *logins: str) -> list[int]:
    """Return the ids of users."""
    return [id_ for id_ in await world.graph.users.ids_of_logins(logins) if id_ is not None]


DEPENDENT = (
    "author { relationship { state } }",
    "viewerHasLiked",
    "viewerHasReposted",
    "likes(first: 1) { totalCount }",
    "entities { ... on MentionEntity { user { id } } }",
    "quotedPost { id }",
    "replyTo { id }",
    "threadRoot { id }",
    "ancestors { id }",
    "replies(first: 1) { nodes { id } }",
    "author { timeline { entries(first: 1) { nodes { id } } } }",
    "... Liked",
    "... on Node { ... on Post { ... on Post { viewerHasLiked } } }",
)


def operation_of(field: str) -> Operation:
    """Return a subscription that selects a field of a post."""
    text = f"subscription {{ homeTimeline {{ cursor ... on PostAdded {{ post {{ id {field} }} }} }} }}"
    fragment = "fragment Liked on Post { viewerHasLiked @include(if: false) }" if "Liked" in field[:9] else ""
    operation = Executor(SCHEMA).prepare(parse(text + fragment), {})
    assert isinstance(operation, Operation)
    return operation


@pytest.mark.parametrize("field", DEPENDENT)
def test_a_selection_that_depends_on_the_viewer_makes_an_operation_dependent(field: str) -> None:
    """This holds wherever the selection is, even in a fragment, and even if a condition leaves it out."""
    assert not operation_of(field).is_independent


async def test_an_execution_for_several_viewers_fails_if_it_needs_one(
    world: World, events: dict[str, list[Any]]
) -> None:
    """A wrong declaration is therefore noticed, and reveals nothing to anybody."""
    published = [event for event in events["homeTimeline"] if isinstance(event, updates.PostAdded)]
    [answer] = [event for event in published if event.post.reply_to]
    for field in DEPENDENT:
        if field != "... Liked":
            result = await operation_of(field).run(answer, SharedContext(world.graph))
            assert [type(error.original_error) for error in result.errors or ()] == [ViewerNeeded], field


@pytest.mark.parametrize(
    ("field", "can_leave_open"),
    [
        ("viewerHasLiked quotedPost { id text author { login } }", True),
        ("author { relationship { state } }", True),
        ("entities { start ... on MentionEntity { user { id login } } }", True),
        ("entities { ... on MentionEntity { user { relationship { state } } } }", False),
        ("quotedPost { viewerHasLiked }", False),
        ("quotedPost { author { relationship { state } } }", False),
        ("likes(first: 1) { nodes { relationship { state } } }", False),
    ],
)
def test_what_is_below_an_open_field_must_be_independent(field: str, can_leave_open: bool) -> None:
    assert operation_of(field).can_leave_open == can_leave_open
