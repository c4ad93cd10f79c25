"""The data that the API returns to a user: lists and timelines, page by page."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from graph.log.events import PostPublished
from resolvers.ids import Kind, decode, encode
from tests.faults.checker.acknowledged import Acknowledged
from tests.faults.checker.client import Client
from tests.faults.checker.person import Person
from tests.support.world import ListOfUsers

PAGE = 100
LIKED_AT_ONCE = 25  # posts whose likes are read in one request
COUNTS = "likesCount repliesCount repostsCount viewerHasLiked viewerHasBookmarked viewerHasReposted"
REPOST = "... on Repost { post { id author { id } } }"
POST = "text replyToId quotedPostId quotedPost { author { id } }"
ITEM = f"__typename id createdAt author {{ id }} {REPOST} ... on Post {{ {POST} }}"
INFO = "pageInfo { hasNextPage endCursor }"
HOME = f"""query ($after: String) {{ viewer {{ homeTimeline {{ liveCursor(first: 100, after: $after)
  entries(first: 100, after: $after) {{ nodes {{ {ITEM} }} {INFO} }} }} }} }}"""
PROFILE = """query ($id: ID!) { user(by: {id: $id}) { login followersCount followingCount postsCount } }"""
POSTS = f"""query ($id: ID!, $after: String) {{ user(by: {{id: $id}}) {{ %s {{ entries(first: 100, after: $after) {{
  nodes {{ {ITEM} ... on Post {{ {COUNTS} }} }} {INFO} }} }} }} }}"""
FOLLOWS = f"""query ($id: ID!, $after: String) {{ user(by: {{id: $id}}) {{ %s(first: 100, after: $after) {{
  totalCount nodes {{ id }} {INFO} }} }} }}"""
OWN = f"query ($after: String) {{ viewer {{ %s(first: 100, after: $after) {{ nodes {{ id }} {INFO} }} }} }}"
LISTS = "{ viewer { lists { id name membersCount members(first: 20) { nodes { id } } } } }"
LIST = f"""query ($id: ID!, $after: String) {{ node(id: $id) {{ ... on UserList {{ timeline {{
  entries(first: 100, after: $after) {{ nodes {{ {ITEM} }} {INFO} }} }} }} }} }}"""
LIKES = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Post { id likes(first: 40) { nodes { id } } } } }"
NOTIFICATION = "__typename id isRead actors(limit: 10) { id } actorsCount ... on PostNotification { post { id } }"
NOTIFICATIONS = f"""query ($after: String) {{ viewer {{ notifications {{ unreadCount
  liveCursor(first: 100, after: $after)
  entries(first: 100, after: $after) {{ edges {{ cursor node {{ {NOTIFICATION} }} }} {INFO} }} }} }} }}"""
EXISTING = "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }"


class Shown(NamedTuple):
    """A post or a repost as the API shows it.

    `counts` are its likes, replies and reposts; `mine` tells whether the viewer likes, bookmarks and reposts it.
    """

    author: int
    text: str
    reply_to: int | None
    repost_of: int | None
    repost_of_author: int | None
    counts: tuple[int, int, int]
    mine: tuple[bool, bool, bool]

    @property
    def repeats(self) -> int | None:
        """The original of a plain repost."""
        return None if self.text else self.repost_of


class Notice(NamedTuple):
    """A notification: its kind, its post, the users, and their number."""

    kind: str
    post: int
    actors: frozenset[int]
    size: int


@dataclass
class Reading:
    """What a user can read. Timelines have posts, newest first; `entries` is the length of all lists of users."""

    timeline: dict[int, Shown]
    replies: dict[int, Shown]
    home: dict[int, Shown]
    neighbour: dict[int, Shown]
    """The timeline of another user."""
    followers: set[int]
    following: set[int]
    muted: set[int]
    blocked: set[int]
    liked: set[int]
    bookmarked: set[int]
    likers: dict[int, set[int]]
    """The users who like each post of `timeline` and `replies`."""
    lists: dict[int, ListOfUsers]
    sizes: dict[int, int]
    """The `membersCount` of each list."""
    list_timelines: dict[int, dict[int, Shown]]
    notices: dict[str, Notice]
    """Notifications by cursor."""
    unread: set[str]
    unread_count: int
    counts: tuple[int, int, int]
    entries: int
    existing: set[int]
    """The posts that were deleted but can still be read."""

    @property
    def posts(self) -> dict[int, Shown]:
        """All posts of the user that the user can see."""
        return self.timeline | self.replies


async def read(person: Person, neighbour: Person) -> Reading:
    """Return what a user can read, and how the user sees the timeline of another user."""
    profile = (await person.insist(PROFILE, id=person.id))["user"]
    timeline, replies = [posts_in(await pages(person, POSTS % name, "user", name, "entries")) for name in TIMELINES]
    other = await pages(person, POSTS % "timeline", "user", "timeline", "entries", id=neighbour.id)
    followers, following = [await pages(person, FOLLOWS % name, "user", name) for name in ("followers", "following")]
    muted, blocked = [await pages(person, OWN % name, "viewer", name) for name in ("mutedUsers", "blockedUsers")]
    liked, bookmarked = [await pages(person, OWN % name, "viewer", name) for name in ("likedPosts", "bookmarks")]
    lists = (await person.insist(LISTS))["viewer"]["lists"]
    notified, unread, _ = await notifications_of(person)
    return Reading(
        timeline=timeline,
        replies=replies,
        home=(await home_of(person))[0],
        neighbour=posts_in(other),
        followers=numbers(followers),
        following=numbers(following),
        muted=numbers(muted),
        blocked=numbers(blocked),
        liked=numbers(liked),
        bookmarked=numbers(bookmarked),
        likers=await likers_of(person, timeline | replies),
        lists={
            number(each): ListOfUsers(person.number, each["name"], frozenset(numbers(each["members"]["nodes"])))
            for each in lists
        },
        sizes={number(each): each["membersCount"] for each in lists},
        list_timelines={
            number(each): posts_in(await pages(person, LIST, "node", "timeline", "entries", id=each["id"]))
            for each in lists
        },
        notices={edge["cursor"]: notice(edge["node"]) for edge in notified},
        unread={edge["cursor"] for edge in notified if not edge["node"]["isRead"]},
        unread_count=unread,
        counts=(profile["postsCount"], profile["followersCount"], profile["followingCount"]),
        entries=len(followers) + len(following) + len(muted) + len(blocked) + len(liked) + len(bookmarked),
        existing=await existing(person, sorted(person.acknowledged.deleted)),
    )


TIMELINES = ("timeline", "repliesTimeline")


def number(node: Any) -> int:
    """Return the number in the id of a node."""
    return decode(node["id"]).numbers[0]


def numbers(nodes: Iterable[Any]) -> set[int]:
    """Return the numbers in the ids of nodes."""
    return {number(node) for node in nodes}


def posts_in(nodes: list[Any]) -> dict[int, Shown]:
    """Return the posts of a timeline, newest first. Raises AssertionError if one occurs twice or out of order."""
    found = {number(node): shown(node) for node in nodes}
    assert len(found) == len(nodes), "a timeline contains a post twice"
    assert [*found] == sorted(found, reverse=True), "a timeline is not in order"
    times = [node["createdAt"] for node in nodes]
    assert times == sorted(times, reverse=True), "the times of a timeline are not in order"
    return found


def shown(node: Any) -> Shown:
    """Return a post or a repost."""
    if node["__typename"] == "Repost":
        of = number(node["post"]), number(node["post"]["author"])
        return Shown(number(node["author"]), "", None, *of, (0, 0, 0), (False, False, False))
    parent, original = [node[name] and decode(node[name]).numbers[0] for name in ("replyToId", "quotedPostId")]
    author = number(node["quotedPost"]["author"]) if node["quotedPost"] else None
    counts = node.get("likesCount", 0), node.get("repliesCount", 0), node.get("repostsCount", 0)
    flags = ("viewerHasLiked", "viewerHasBookmarked", "viewerHasReposted")
    liked, bookmarked, reposted = [bool(node.get(flag)) for flag in flags]
    return Shown(number(node["author"]), node["text"], parent, original, author, counts, (liked, bookmarked, reposted))


def notice(node: Any) -> Notice:
    """Return a notification."""
    kind = node["__typename"].removesuffix("Notification").upper()
    post = number(node["post"]) if node.get("post") else 0
    return Notice(kind, post, frozenset(numbers(node["actors"])), node["actorsCount"])


async def pages(client: Client, query: str, *path: str, **variables: Any) -> list[Any]:
    """Return the nodes of all pages of a connection, by default one of the client's, or none if it is null."""
    nodes: list[Any] = []
    after = None
    variables = {"id": client.id, **variables} if "$id" in query else variables
    while True:
        page = await client.insist(query, after=after, **variables)
        for name in path:
            page = page and page[name]
        if page is None:
            return nodes
        nodes += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return nodes
        after = page["pageInfo"]["endCursor"]


async def home_of(client: Client, limit: int = sys.maxsize) -> tuple[dict[int, Shown], str, int]:
    """Return the posts of a home timeline, newest first, the first page's `liveCursor`, and the oldest post read.

    The oldest post is 0 if all were read. Pages are read until there are `limit` posts.
    """
    nodes: list[Any] = []
    live, after = "", None
    while True:
        timeline = (await client.insist(HOME, after=after))["viewer"]["homeTimeline"]
        page, live = timeline["entries"], live or timeline["liveCursor"]
        nodes += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return posts_in(nodes), live, 0
        if len(nodes) >= limit:
            return posts_in(nodes), live, number(nodes[-1])
        after = page["pageInfo"]["endCursor"]


async def notifications_of(client: Client) -> tuple[list[Any], int, str]:
    """Return the edges of all notifications, newest first, the number of unread ones, and the first `liveCursor`."""
    edges: list[Any] = []
    unread, live, after = None, "", None
    while True:
        feed = (await client.insist(NOTIFICATIONS, after=after))["viewer"]["notifications"]
        edges += feed["entries"]["edges"]
        unread, live = (feed["unreadCount"], feed["liveCursor"]) if unread is None else (unread, live)
        if not feed["entries"]["pageInfo"]["hasNextPage"]:
            cursors = [edge["cursor"] for edge in edges]
            assert cursors == sorted({*cursors}, reverse=True), f"{client.login}'s notifications are not in order"
            return edges, unread, live
        after = feed["entries"]["pageInfo"]["endCursor"]


async def likers_of(client: Client, posts: dict[int, Shown]) -> dict[int, set[int]]:
    """Return the users who like each post."""
    found: dict[int, set[int]] = {post: set() for post in posts}
    liked = [encode(Kind.POST, post) for post, each in posts.items() if each.counts[0]]
    for start in range(0, len(liked), LIKED_AT_ONCE):
        for node in (await client.insist(LIKES, ids=liked[start : start + LIKED_AT_ONCE]))["nodes"]:
            found |= {number(node): numbers(node["likes"]["nodes"])} if node else {}
    return found


async def existing(client: Client, posts: list[int]) -> set[int]:
    """Return those of the given posts and reposts that can be read."""
    found: set[int] = set()
    for start in range(0, len(posts), PAGE // 2):
        ids = [encode(kind, post) for post in posts[start : start + PAGE // 2] for kind in (Kind.POST, Kind.REPOST)]
        found |= numbers(node for node in (await client.insist(EXISTING, ids=ids))["nodes"] if node)
    return found


def as_acknowledged(people: list[Person], readings: dict[int, Reading]) -> Acknowledged:
    """Return what users can read about themselves, as if it had been acknowledged.

    If changes may be lost, derived data must agree with this. In that case, no user may block another one, because a
    block hides a user's own reposts.
    """
    known = people[0].acknowledged
    seen = {user: max({*mine.notices} - mine.unread, default="") for user, mine in readings.items()}
    found = Acknowledged(authors=known.authors, texts=known.texts, seen=seen, day=known.day)
    logins = {person.login: person.number for person in people}
    world = found.world
    for user, mine in readings.items():
        world.follows |= {(user, other) for other in mine.following}
        world.mutes |= {(user, other) for other in mine.muted}
        world.likes |= {(user, post): 1 for post in mine.liked}
        world.lists |= mine.lists
        found.bookmarks |= {(user, post) for post in mine.bookmarked}
        for post, each in mine.posts.items():
            mentioned = each.text.partition("@")[2]
            world.posts[post] = PostPublished(
                user,
                each.text,
                reply_to=each.reply_to,
                reply_to_author=known.authors.get(each.reply_to or 0),
                repost_of=each.repost_of,
                repost_of_author=known.authors.get(each.repost_of or 0),
                mentions=(logins[mentioned],) if mentioned else (),
                listed=post in mine.timeline,
            )
            if each.repeats is not None:
                world.reposted[user, each.repeats] = post
    return found
