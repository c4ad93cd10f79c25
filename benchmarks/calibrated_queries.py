"""The queries whose prices are calibrated: each takes a number n, and requests n units of one thing."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.calibration_world import World

FRUGAL = "pageInfo { hasNextPage }"
FALSE = 'searchPosts(filter: {keywords: ["北京大"]}) { posts(first: 1) { pageInfo { hasNextPage } } }'
POST = "id text createdAt author { id login name }"
ENTRY = "id createdAt author { id login name } ... on Post { text }"


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A query: `write` returns its text for a number of units, and `unit` is the name of the unit.

    The requests for n and 2n units are compared or, if `is_whole`, an empty request and the request for n units.
    """

    write: Callable[[int], str]
    n: int
    unit: str
    anonymous: bool = False
    is_whole: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of units in the two requests that are compared."""
        return (0, self.n) if self.is_whole else (self.n, 2 * self.n)


def queries(world: World) -> Mapping[str, Calibrated]:
    """Return the queries by the field that they measure."""
    return {**timelines(world), **searches(world), **lists(world), **notifications(world), **posts(world)}


def timelines(world: World) -> dict[str, Calibrated]:
    """Return the queries for timelines and profiles."""
    return {
        "home page of 30": Calibrated(
            lambda n: f"{{ viewer {{ homeTimeline {{ entries(first: {30 * n}) {{ nodes {{ {ENTRY} }} }} }} }} }}",
            1,
            "30 posts",
        ),
        "viewer": Calibrated(lambda n: repeated(n, "viewer { user { id login name } }"), 20, "alias"),
        "user by login": Calibrated(
            lambda n: repeated_with(n, [f'user(by: {{login: "user{at}"}}) {{ id name bio }}' for at in range(100)]),
            20,
            "user",
        ),
        "node": Calibrated(lambda n: nodes(world.crowd[:n], "... on User { name }"), 40, "user"),
        "users' timelines, first: 1": Calibrated(
            lambda n: nodes(world.crowd[:n], f"... on User {{ timeline {{ entries(first: 1) {{ {FRUGAL} }} }} }}"),
            40,
            "timeline",
        ),
        "users' timelines, first: 20": Calibrated(
            lambda n: nodes(
                world.crowd[:n], f"... on User {{ timeline {{ entries(first: 20) {{ nodes {{ {ENTRY} }} }} }} }}"
            ),
            5,
            "timeline",
        ),
        "users' replies, last: 5": Calibrated(
            lambda n: nodes(
                world.crowd[:n], f"... on User {{ repliesTimeline {{ entries(last: 5) {{ nodes {{ {ENTRY} }} }} }} }}"
            ),
            20,
            "timeline",
        ),
        "followers, first: 1": Calibrated(
            lambda n: nodes(world.crowd[:n], f"... on User {{ followers(first: 1) {{ {FRUGAL} }} }}"), 40, "user"
        ),
        "followers, first: 50": Calibrated(
            lambda n: nodes(
                world.crowd[::60][:n],
                "... on User { followers(first: 50) { nodes { id login name relationship { state } } } }",
            ),
            5,
            "user",
        ),
        "counts": Calibrated(
            lambda n: nodes(world.crowd[:n], "... on User { followersCount followingCount postsCount }"), 40, "user"
        ),
        "followersYouKnow": Calibrated(
            lambda n: nodes(
                world.crowd[:n], "... on User { followersYouKnow(first: 3) { totalCount nodes { id name } } }"
            ),
            3,
            "user",
        ),
    }


def searches(world: World) -> dict[str, Calibrated]:
    """Return the queries that read the archive."""
    people = json.dumps(list(world.crowd[:100]))
    words = ["morning", "coffee", "garden", "river", "city"]
    common = [json.dumps([*words, f"word{at}"]) for at in range(5)]
    return {
        "publicTimeline, first: 1": Calibrated(
            lambda n: repeated(n, f"publicTimeline {{ entries(first: 1) {{ {FRUGAL} }} }}"),
            1,
            "page",
            True,
            is_whole=True,
        ),
        "publicTimeline, first: 20": Calibrated(
            lambda n: f"{{ publicTimeline {{ entries(first: {20 * n}) {{ nodes {{ {ENTRY} }} }} }} }}",
            2,
            "20 posts",
            True,
        ),
        "searchPosts, a common word": Calibrated(
            lambda n: repeated_with(
                n,
                [
                    f'searchPosts(filter: {{keywords: ["{word}"]}}) {{ posts(first: 1) {{ {FRUGAL} }} }}'
                    for word in ("morning", "coffee", "garden", "river", "city")
                ],
            ),
            2,
            "search",
            True,
        ),
        "searchPosts, 100 users and common words": Calibrated(
            lambda n: repeated_with(
                n,
                [
                    f"searchPosts(filter: {{users: {people}, keywords: {words}}}) {{ posts(first: 1) {{ {FRUGAL} }} }}"
                    for words in common
                ],
            ),
            2,
            "search",
            True,
        ),
        "searchPosts, first: 20": Calibrated(
            lambda n: (
                f'{{ searchPosts(filter: {{keywords: ["morning"]}}) '
                f"{{ posts(first: {20 * n}) {{ nodes {{ {POST} }} }} }} }}"
            ),
            2,
            "20 posts",
            True,
        ),
        "searchPosts, false candidates": Calibrated(
            lambda n: repeated(
                n, f'searchPosts(filter: {{keywords: ["北京大"]}}) {{ posts(first: 1) {{ {FRUGAL} }} }}'
            ),
            1,
            "search",
            True,
            is_whole=True,
        ),
        "searchUsers": Calibrated(
            lambda n: repeated_with(
                n, [f'searchUsers(text: "user{at}", first: 10) {{ nodes {{ login }} }}' for at in range(5)]
            ),
            2,
            "search",
            True,
        ),
    }


def lists(world: World) -> dict[str, Calibrated]:
    """Return the queries for lists."""
    return {
        "lists' timelines, first: 1": Calibrated(
            lambda n: nodes(world.lists[:n], f"... on UserList {{ timeline {{ entries(first: 1) {{ {FRUGAL} }} }} }}"),
            4,
            "list of 249",
        ),
        "lists' timelines, first: 20": Calibrated(
            lambda n: nodes(
                world.lists[:n], f"... on UserList {{ timeline {{ entries(first: 20) {{ nodes {{ {ENTRY} }} }} }} }}"
            ),
            4,
            "list of 249",
        ),
        "lists' members, first: 50": Calibrated(
            lambda n: nodes(world.lists[:n], "... on UserList { members(first: 50) { nodes { id login } } }"), 4, "list"
        ),
        "lists' membersCount": Calibrated(
            lambda n: nodes(world.lists[:n], "... on UserList { name membersCount }"), 24, "list"
        ),
    }


def notifications(world: World) -> dict[str, Calibrated]:
    """Return the queries for notifications, of which more than 100 are unread."""
    posts = " ".join(f"... on {kind}Notification {{ post {{ text }} }}" for kind in ("Like", "Repost", "Mention"))
    shown = f"nodes {{ id actorsCount actors {{ login }} {posts} }}"
    return {
        "notifications, unreadCount": Calibrated(
            lambda n: "{ viewer { notifications { unreadCount } } }", 1, "request", is_whole=True
        ),
        "notifications, entries(first: 50)": Calibrated(
            lambda n: f"{{ viewer {{ notifications {{ entries(first: {50 * n}) {{ {shown} }} }} }} }}", 1, "50 entries"
        ),
        "notifications, bare entries(first: 50)": Calibrated(
            lambda n: f"{{ viewer {{ notifications {{ entries(first: {50 * n}) {{ {FRUGAL} }} }} }} }}", 1, "50 entries"
        ),
    }


def posts(world: World) -> dict[str, Calibrated]:
    """Return the queries for posts and their fields."""
    return {
        "posts": Calibrated(lambda n: nodes(world.full[:n], f"... on Post {{ {POST} }}"), 40, "post"),
        "entities, 45 of each post": Calibrated(
            lambda n: nodes(
                world.full[:n],
                "... on Post { entities { __typename start end ... on HashtagEntity { tag } "
                "... on MentionEntity { user { login } } } }",
            ),
            30,
            "post",
        ),
        "replies, first: 10": Calibrated(
            lambda n: nodes(world.threads[:n], f"... on Post {{ replies(first: 10) {{ nodes {{ {POST} }} }} }}"),
            3,
            "thread",
        ),
        "replies, first: 50": Calibrated(
            lambda n: nodes(world.threads[:n], f"... on Post {{ replies(first: 50) {{ nodes {{ {POST} }} }} }}"),
            3,
            "thread",
        ),
        "ancestors": Calibrated(
            lambda n: nodes(world.deep[:n], f"... on Post {{ ancestors {{ {POST} }} }}"), 5, "post of depth 25"
        ),
        "likes, first: 1": Calibrated(
            lambda n: nodes(world.liked[:n], f"... on Post {{ likes(first: 1) {{ {FRUGAL} }} }}"), 40, "post"
        ),
        "likes, first: 50": Calibrated(
            lambda n: nodes(world.liked[:n], "... on Post { likes(first: 50) { nodes { id login } } }"), 5, "post"
        ),
        "reposts, first: 1": Calibrated(
            lambda n: nodes(world.liked[:n], f"... on Post {{ reposts(first: 1) {{ {FRUGAL} }} }}"), 40, "post"
        ),
        "viewerHasLiked, viewerHasReposted": Calibrated(
            lambda n: nodes(world.full[:n], "... on Post { viewerHasLiked viewerHasReposted }"), 40, "post"
        ),
        "likedPosts, first: 20": Calibrated(
            lambda n: f"{{ viewer {{ likedPosts(first: {20 * n}) {{ nodes {{ {POST} }} }} }} }}", 1, "20 posts"
        ),
    }


def repeated(n: int, field: str) -> str:
    """Return a query with a field under n aliases."""
    return repeated_with(n, [field])


def repeated_with(n: int, fields: Sequence[str]) -> str:
    """Return a query with n aliases of the fields, in turn."""
    return f"{{ {' '.join(f'a{at}: {fields[at % len(fields)]}' for at in range(n))} }}"


def nodes(ids: Iterable[str], selection: str) -> str:
    """Return a query for objects by id."""
    return f"{{ nodes(ids: {json.dumps(list(ids))}) {{ {selection} }} }}"
