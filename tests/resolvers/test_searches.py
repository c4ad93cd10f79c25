"""Searches through the schema."""

from typing import Any

import pytest

from graph.errors import ArchiveUnavailable
from graph.model import Location, time_of
from schema.scalars import print_time
from tests.resolvers.conftest import World, texts, user_id
from tests.support.graph_worlds import archive_log

SEARCH = """query ($filter: PostFilter!, $first: Int, $after: String, $last: Int, $before: String) {
    searchPosts(filter: $filter) { liveCursor posts(first: $first, after: $after, last: $last, before: $before) {
        edges { cursor node { text author { login } } } nodes { text }
        pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""


async def archive(world: World) -> None:
    await world.graph.worker().drain()
    await archive_log(world.graph)


async def test_posts_are_found_by_author_words_and_place(world: World) -> None:
    """All given fields must match, and at least one entry of each list. Anonymous clients can search."""
    alice, bob = await world.users("alice", "bob")
    await world.post(alice, "red tea", "Green tea", "红茶")
    await world.post(bob, "GREEN", "绿茶")
    await world.graph.posts.publish(bob.id, "here", location=Location(10, 20))
    await archive(world)

    async def found(**filter_: Any) -> list[str]:
        answer = await world.ask(SEARCH, None, filter=filter_, first=10)
        assert answer.errors == []
        return texts(answer.data["searchPosts"]["posts"])

    assert await found(keywords=["green", "红茶"]) == ["GREEN", "红茶", "Green tea"]
    assert await found(keywords=["tea red"]) == ["red tea"]
    assert await found(users=[user_id(bob)]) == ["here", "绿茶", "GREEN"]
    assert await found(users=[user_id(alice)], keywords=["茶"]) == ["红茶"]
    assert await found(within={"south": 0, "west": 0, "north": 10, "east": 20}) == ["here"]
    assert await found(users=[user_id(alice)], within={"south": 0, "west": 0, "north": 10, "east": 20}) == []


async def test_posts_of_a_time_are_found(world: World) -> None:
    [alice] = await world.users("alice")
    [first] = await world.post(alice, "tea")
    await archive(world)
    search = """query ($since: DateTime, $until: DateTime) {
        searchPosts(filter: { keywords: ["tea"] }, since: $since, until: $until) {
            posts(first: 9) { edges { node { text } } } } }"""
    at = print_time(time_of(first.id))

    assert texts((await world.ask(search, None, since=at)).data["searchPosts"]["posts"]) == ["tea"]
    assert texts((await world.ask(search, None, until=at)).data["searchPosts"]["posts"]) == []
    refused = await world.ask(search, None, since=at, until=at)
    assert refused.errors == [(("searchPosts",), "BAD_USER_INPUT")]


async def test_a_search_is_paged_in_both_directions(world: World) -> None:
    """Pages include authors, and paging does not change the live cursor."""
    [alice] = await world.users("alice")
    await world.post(alice, *(f"tea {n}" for n in range(1, 6)))
    await archive(world)
    filter_ = {"keywords": ["tea"]}

    first = (await world.ask(SEARCH, alice, filter=filter_, first=2)).data["searchPosts"]
    info = first["posts"]["pageInfo"]
    second = (await world.ask(SEARCH, alice, filter=filter_, first=5, after=info["endCursor"])).data["searchPosts"]
    back = (await world.ask(SEARCH, alice, filter=filter_, last=2)).data["searchPosts"]

    assert texts(first["posts"]) == ["tea 5", "tea 4"]
    assert texts(second["posts"]) == ["tea 3", "tea 2", "tea 1"]
    assert texts(back["posts"]) == ["tea 2", "tea 1"]
    assert (info["hasNextPage"], second["posts"]["pageInfo"]["hasNextPage"]) == (True, False)
    assert back["posts"]["pageInfo"]["hasPreviousPage"] is True
    assert first["liveCursor"] == second["liveCursor"]
    assert first["posts"]["edges"][0]["node"]["author"]["login"] == "alice"


@pytest.mark.parametrize(
    "filter_",
    [{}, {"keywords": []}, {"keywords": ["!"]}, {"keywords": ["a"] * 21}, {"users": ["nonsense"]}, {"users": []}],
)
async def test_an_invalid_filter_is_refused(world: World, filter_: dict[str, Any]) -> None:
    answer = await world.ask(SEARCH, None, filter=filter_, first=10)

    assert answer.errors == [(("searchPosts",), "BAD_USER_INPUT")]
    assert answer.data == {"searchPosts": None}


async def test_a_search_without_the_archive_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The field is null, even if the archive goes down after the search has begun."""
    [alice] = await world.users("alice")
    await world.post(alice, "tea")
    await archive(world)
    document = SEARCH.replace("searchPosts(", "viewer { user { login } } searchPosts(", 1)

    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(world.graph.archive, "candidates", fail)
    answer = await world.ask(document, alice, filter={"keywords": ["tea"]}, first=10)
    assert answer.errors == [(("searchPosts", "posts"), "ARCHIVE_UNAVAILABLE")]

    monkeypatch.setattr(world.graph.archive, "state", fail)
    answer = await world.ask(document, alice, filter={"keywords": ["tea"]}, first=10)
    assert answer.errors == [(("searchPosts",), "ARCHIVE_UNAVAILABLE")]
    assert answer.data == {"viewer": {"user": {"login": "alice"}}, "searchPosts": None}


async def test_reposts_are_not_found(world: World) -> None:
    """A search for the posts of a user finds only what the user has written."""
    alice, bob = await world.users("alice", "bob")
    [post] = await world.post(bob, "green tea")
    await world.graph.reposts.repost(world.graph.visibility.of(alice.id), alice.id, post.id)
    await world.post(alice, "red tea")
    await archive(world)

    answer = await world.ask(SEARCH, None, filter={"users": [user_id(alice)]}, first=10)

    assert answer.errors == []
    assert texts(answer.data["searchPosts"]["posts"]) == ["red tea"]
