"""What a viewer sees through every field of the schema that returns a user, a post or a repost.

The documents are generated from the schema, so that new fields are walked, too. The alias of each field names its type.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, cast

import pytest
from graphql import (
    DocumentNode,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    build_schema,
    get_named_type,
    is_required_argument,
    parse,
)

from executor import Executor
from graph.model import Post, Repost, User
from resolvers.context import Context
from schema import schema
from tests.resolvers.conftest import PASSWORD, World, errors_of, issue_token, post_id, repost_id, user_id
from tests.support.graph_worlds import archive_log

SCHEMA = build_schema(schema.as_str())
ENTITIES = {"User", "Post", "Repost", "TimelineItem"}
HOPS = 2
"""How many users, posts and reposts follow each other on a path."""
ROOTS = {
    "Query_user": ("ID!", "(by: { id: $given })"),
    "Query_post": ("ID!", "(id: $given)"),
    "Query_node": ("ID!", "(id: $given)"),
    "Query_nodes": ("[ID!]!", "(ids: $given)"),
    "Query_searchPosts": ("[ID!]", "(filter: { users: $given })"),
    "Query_searchUsers": ("String!", "(text: $given, first: 10)"),
}
"""The fields of `Query` that require arguments: the type of a variable, and the arguments with the variable."""
EXECUTOR = Executor(schema._schema)
PROFILES = {"Query_user", "Query_node", "Query_nodes"}
"""The fields at which the profile of a hidden user is visible. The viewer's `blockedUsers` are, too."""
LOGINS = ("alice", "bob", "carol", "dave")
HOME = ("Viewer_homeTimeline", "Timeline_entries")
SIZES = {"NotificationFeed_entries": 60}
"""The sizes of pages that must show more than nine entries: a notification of each kind."""
MUTED_AT = {"Viewer_homeTimeline", "Viewer_notifications", "Query_publicTimeline"}
"""The fields below which a mute hides something."""


def selection(type_: GraphQLNamedType, hops: int) -> str:
    """Return the selection of everything that leads from a type to users and posts, with up to `hops` in a row."""
    if isinstance(type_, GraphQLInterfaceType):
        possible = SCHEMA.get_possible_types(type_)
        return " ".join(["__typename", *(f"... on {each.name} {{ {selection(each, hops)} }}" for each in possible)])
    words = ["__typename", *(["id"] if type_.name in ENTITIES else [])]
    for coordinate, name, target in fields_of(type_):
        left = hops - (target.name in ENTITIES)
        if left >= 0:
            words.append(f"{coordinate}: {name}{arguments(coordinate)} {{ {selection(target, left)} }}")
    return " ".join(words)


def fields_of(type_: GraphQLNamedType, *passed: str) -> Iterator[tuple[str, str, GraphQLNamedType]]:
    """Yield the fields of a type that lead to users or posts: coordinate, name and type."""
    for name, each in cast(GraphQLObjectType, type_).fields.items():
        target = get_named_type(each.type)
        if leads_to_entities(target, *passed, type_.name):
            yield f"{type_.name}_{name}", name, target


def leads_to_entities(type_: GraphQLNamedType, *passed: str) -> bool:
    """Return True if a user or a post can be reached from a type without going through `passed` types again."""
    if type_.name in ENTITIES:
        return True
    if isinstance(type_, GraphQLInterfaceType):
        return any(leads_to_entities(each, *passed) for each in SCHEMA.get_possible_types(type_))
    if not isinstance(type_, GraphQLObjectType) or type_.name in passed:
        return False
    return any(True for _ in fields_of(type_, *passed))


def arguments(coordinate: str) -> str:
    """Return the arguments of a field below the root: only pages have any."""
    type_, name = coordinate.split("_")
    declared = cast(GraphQLObjectType, SCHEMA.type_map[type_]).fields[name].args
    assert not any(map(is_required_argument, declared.values())), f"add arguments of {coordinate}"
    return f"(first: {SIZES.get(coordinate, 9)})" if "first" in declared else ""


@cache
def documents() -> dict[str, DocumentNode]:
    """Return a query of each field of `Query` that leads to users or posts."""
    found = {}
    for coordinate, name, target in fields_of(SCHEMA.type_map["Query"]):
        type_, given = ROOTS[coordinate] if coordinate in ROOTS else ("", arguments(coordinate))
        header = f"query ($given: {type_})" if type_ else ""
        found[coordinate] = parse(f"{header} {{ {coordinate}: {name}{given} {{ {selection(target, HOPS - 1)} }} }}")
    return found


def fields_with_entities() -> set[str]:
    """Return the fields below `Query` that return users or posts, themselves or in a list."""
    waiting, reached = ["Query"], set[str]()
    found = set[str]()
    while waiting:
        type_ = SCHEMA.type_map[waiting.pop()]
        if type_.name in reached:
            continue
        reached.add(type_.name)
        if isinstance(type_, GraphQLInterfaceType):
            waiting += [each.name for each in SCHEMA.get_possible_types(type_)]
            continue
        for coordinate, _, target in fields_of(type_):
            waiting.append(target.name)
            found |= {coordinate} if target.name in ENTITIES else set()
    return found


class Sight(NamedTuple):
    """A user or a post in an answer: the fields that lead to it, its id, and the ids of the entities above it."""

    path: tuple[str, ...]
    id: str
    above: tuple[str, ...]


def sights(value: Any, path: tuple[str, ...] = (), above: tuple[str, ...] = ()) -> Iterator[Sight]:
    """Yield the users and posts in an answer."""
    if isinstance(value, list):
        for each in value:
            yield from sights(each, path, above)
    elif isinstance(value, dict):
        if value.get("__typename") in ENTITIES:
            yield Sight(path, value["id"], above)
            above = (*above, value["id"])
        for name, each in value.items():
            yield from sights(each, (*path, name), above)


def in_home(found: Iterable[Sight]) -> set[str]:
    """Return the ids of the entries of the home timeline."""
    return {sight.id for sight in found if sight.path[1:3] == HOME and not sight.above}


@dataclass
class Stage:
    """A world in which everybody has done everything that users can do, with and about everybody else."""

    world: World
    users: dict[str, User]
    posts: dict[str, Post]

    def id(self, name: str) -> str:
        """Return the global id of a user, a post or a repost."""
        if name in self.users:
            return user_id(self.users[name])
        post = self.posts[name]
        return repost_id(post) if isinstance(post, Repost) else post_id(post)

    def of(self, login: str) -> set[str]:
        """Return the global ids of what a user has published or reposted, and of reposts of it."""
        return {
            self.id(name) for name in self.posts if name.startswith(f"{login}'s") or name.endswith(f"repost of {login}")
        }

    def roots(self) -> dict[str, list[Any]]:
        """Return the values of the arguments in ROOTS, one for each call."""
        users, posts = ([self.id(name) for name in names] for names in (self.users, self.posts))
        reposts = [self.id(name) for name, post in self.posts.items() if isinstance(post, Repost)]
        some = [users[1], *posts[:2], *reposts[:2]]
        return {
            "Query_user": users,
            "Query_post": posts,
            "Query_node": some,
            "Query_nodes": [[*users, *posts]],
            "Query_searchPosts": [users],
            "Query_searchUsers": [*self.users],
        }

    async def seen_by(self, login: str | None) -> list[Sight]:
        """Return what a viewer sees through all fields, starting from all users and posts."""
        found: list[Sight] = []
        viewer = await self.world.viewer(self.users[login] if login else None)
        roots = self.roots()
        assert roots.keys() == ROOTS.keys()
        for coordinate, document in documents().items():
            for given in roots.get(coordinate, [None]):
                context = Context(self.world.graph, viewer, issue_token)
                result = await EXECUTOR.execute(document, context_value=context, variable_values={"given": given})
                assert errors_of(result.errors) == []
                found += sights(result.data)
        return found


@pytest.fixture
async def stage(world: World) -> Stage:
    """Let everybody follow, answer, quote, repost, like and mention others. Some of it is archived."""
    users = dict(zip(LOGINS, await world.users(*LOGINS), strict=True))
    graph, posts = world.graph, dict[str, Post]()
    for login, user in users.items():
        await world.follow(user, *(other for other in users.values() if other is not user))
        [posts[f"{login}'s post"]] = await world.post(user, "for @alice, @bob and @carol")
    for login, other in (
        ("bob", "carol"),
        ("carol", "bob"),
        ("alice", "carol"),
        ("carol", "alice"),
        ("carol", "carol"),
    ):
        target, author = posts[f"{other}'s post"].id, users[login].id
        posts[f"{login}'s answer to {other}"] = await graph.posts.publish(
            author, "answer", reply_to=target, quote_of=target
        )
    reply = await graph.posts.publish(users["bob"].id, "answer", reply_to=posts["alice's post"].id)
    posts["bob's answer to alice"] = reply
    for login, other in (("bob", "alice"), ("dave", "bob")):
        target = posts[f"{other}'s post"].id
        posts[f"{login}'s quote of {other}"] = await graph.posts.publish(users[login].id, "quote", quote_of=target)
    for user in users.values():
        for post in posts.values():
            await graph.likes.like(user.id, post.id)
            await graph.bookmarks.add(graph.visibility.of(user.id), user.id, post.id)
    for login, other in (("bob", "carol"), ("carol", "bob"), ("dave", "bob"), ("dave", "carol"), ("bob", "alice")):
        view, original = graph.visibility.of(users[login].id), posts[f"{other}'s post"].id
        repost = await graph.reposts.repost(view, users[login].id, original)
        posts[f"{login}'s repost of {other}"] = repost
    await graph.worker().drain()
    await archive_log(graph)
    return Stage(world, users, posts)


async def test_a_block_hides_posts_likes_and_lists_at_every_field(stage: Stage) -> None:
    """This holds in both directions. The other user's profile is visible where requested, but nothing below it."""
    graph, users = stage.world.graph, stage.users
    everything = {sight.id for sight in await stage.seen_by("dave")}
    hidden = stage.of("bob")
    assert hidden <= everything
    for viewer, blocker, blocked in (("alice", "alice", "bob"), ("carol", "bob", "carol")):
        await graph.blocks.block(users[blocker].id, users[blocked].id)

        found = await stage.seen_by(viewer)

        assert [sight for sight in found if sight.id in hidden or stage.id("bob") in sight.above] == []
        profiles = {sight.path for sight in found if sight.id == stage.id("bob")}
        assert {path[-1] for path in profiles if "Viewer_blockedUsers" not in path} == PROFILES
        assert all("Viewer_blockedUsers" in path for path in profiles if path[-1] not in PROFILES)
        assert everything - {sight.id for sight in found} == hidden


async def test_a_suspension_hides_the_user_at_every_field(stage: Stage) -> None:
    """The profile, all posts and reposts, and reposts of the posts are hidden from everybody. Others stay visible."""
    everything = {sight.id for sight in await stage.seen_by("dave")}
    hidden = {*stage.of("bob"), stage.id("bob")}
    assert hidden <= everything
    await stage.world.graph.moderation.suspend(stage.users["bob"].id)
    for viewer in ("alice", "dave", None):
        found = await stage.seen_by(viewer)
        assert [sight for sight in found if not hidden.isdisjoint({sight.id, *sight.above})] == []
        assert everything - {sight.id for sight in found} == hidden


async def test_a_deletion_hides_the_user_at_every_field(stage: Stage) -> None:
    """The profile, all posts and reposts, and reposts of the posts are hidden from everybody. Others stay visible."""
    everything = {sight.id for sight in await stage.seen_by("dave")}
    hidden = {*stage.of("bob"), stage.id("bob")}
    await stage.world.graph.account_deletion.delete(stage.users["bob"].id, PASSWORD)
    for viewer in ("alice", "dave", None):
        found = await stage.seen_by(viewer)
        assert [sight for sight in found if not hidden.isdisjoint({sight.id, *sight.above})] == []
        assert everything - {sight.id for sight in found} == hidden


async def test_a_mute_hides_posts_and_reposts_of_them_only_where_it_filters(stage: Stage) -> None:
    graph, users = stage.world.graph, stage.users
    before = {*await stage.seen_by("alice")}
    await graph.blocks.mute(users["alice"].id, users["bob"].id)
    after = {*await stage.seen_by("alice")}
    assert stage.of("bob") & in_home(before)
    assert not stage.of("bob") & in_home(after)
    assert {sight.path for sight in before - after if MUTED_AT.isdisjoint(sight.path)} == set()


async def test_an_anonymous_client_sees_what_belongs_to_nobody(stage: Stage) -> None:
    """The blocks of others hide nothing from it."""
    graph, users = stage.world.graph, stage.users
    await graph.blocks.block(users["alice"].id, users["bob"].id)
    found = await stage.seen_by(None)
    assert {sight.id for sight in found} == {stage.id(name) for name in (*stage.users, *stage.posts)}
    assert {sight.path[0] for sight in found} == {*stage.roots(), "Query_publicTimeline"}


async def test_the_walk_meets_every_field(stage: Stage) -> None:
    """The viewer sees a user or a post at each field. Otherwise, the other tests would prove nothing."""
    graph, users = stage.world.graph, stage.users
    await graph.blocks.mute(users["alice"].id, users["carol"].id)
    await graph.blocks.block(users["alice"].id, users["dave"].id)
    met = {sight.path[-1] for sight in await stage.seen_by("alice")}
    assert fields_with_entities() - met == set()
