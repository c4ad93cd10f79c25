"""The data that the API returns about users: profiles, lists and timelines, page by page."""

from dataclasses import dataclass
from typing import Any

from tests.faults.checker.person import Person

PAGE = 100
HOME = """query ($after: String) { viewer { homeTimeline { liveCursor posts(first: 100, after: $after) {
  edges { node { id createdAt author { id } } } pageInfo { hasNextPage endCursor } } } } }"""
PROFILE = """query ($id: ID!) { user(by: {id: $id}) { login followersCount followingCount postsCount } }"""
POSTS = """query ($id: ID!, $after: String) { user(by: {id: $id}) { timeline { posts(first: 100, after: $after) {
  nodes { id text } pageInfo { hasNextPage endCursor } } } } }"""
FOLLOWS = """query ($id: ID!, $after: String) { user(by: {id: $id}) { %s(first: 100, after: $after) {
  totalCount nodes { id } pageInfo { hasNextPage endCursor } } } }"""
EXISTING = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"


@dataclass
class Reading:
    """The readable data of a user."""

    posts: dict[str, str]
    home: dict[str, str]
    followers: set[str]
    following: set[str]
    counts: tuple[int, int, int]
    listed: int
    """The number of entries in `posts`, `followers` and `following` before duplicates were removed."""
    existing: set[str]
    """The posts that were deleted but can still be read."""


async def read(person: Person) -> Reading:
    """Return the readable data of a user."""
    profile = (await person.insist(PROFILE, id=person.id))["user"]
    nodes = await pages(person, POSTS, "timeline", "posts")
    followers = await pages(person, FOLLOWS % "followers", "followers")
    following = await pages(person, FOLLOWS % "following", "following")
    return Reading(
        posts={node["id"]: node["text"] for node in nodes},
        home=(await home_of(person))[0],
        followers={node["id"] for node in followers},
        following={node["id"] for node in following},
        counts=(profile["postsCount"], profile["followersCount"], profile["followingCount"]),
        listed=len(nodes) + len(followers) + len(following),
        existing=await existing(person, sorted(person.deleted)),
    )


async def pages(person: Person, query: str, *path: str) -> list[Any]:
    """Return the nodes of all pages of a connection of a user."""
    nodes: list[Any] = []
    after = None
    while True:
        page = (await person.insist(query, id=person.id, after=after))["user"]
        for name in path:
            page = page[name]
        nodes += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return nodes
        after = page["pageInfo"]["endCursor"]


async def home_of(person: Person) -> tuple[dict[str, str], str]:
    """Return the authors of the posts of a home timeline, newest first, and the `liveCursor` of the first page."""
    found: dict[str, str] = {}
    times: list[str] = []
    live, after = "", None
    while True:
        timeline = (await person.insist(HOME, after=after))["viewer"]["homeTimeline"]
        page, live = timeline["posts"], live or timeline["liveCursor"]
        for edge in page["edges"]:
            assert edge["node"]["id"] not in found, f"{person.login}'s home timeline contains a post twice"
            found[edge["node"]["id"]] = edge["node"]["author"]["id"]
            times.append(edge["node"]["createdAt"])
        if not page["pageInfo"]["hasNextPage"]:
            assert times == sorted(times, reverse=True), f"{person.login}'s home timeline is not in order"
            return found, live
        after = page["pageInfo"]["endCursor"]


async def existing(person: Person, posts: list[str]) -> set[str]:
    """Return those of the given posts that can be read."""
    found: set[str] = set()
    for start in range(0, len(posts), PAGE):
        nodes = (await person.insist(EXISTING, ids=posts[start : start + PAGE]))["nodes"]
        found |= {node["id"] for node in nodes if node}
    return found
