"""The example operations run unchanged in the demo world and return useful data."""

import json
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, parse

from executor import Executor, Operation
from graph import Graph
from resolvers import ids
from schema import schema
from server.playground.examples import OPENED, examples
from server.playground.variables import variables
from tests.examples.alice import EXAMPLES, Alice

USER, POST, LIST = (ids.encode(kind, 1) for kind in (ids.Kind.USER, ids.Kind.POST, ids.Kind.LIST))
REQUIRED: dict[str, dict[str, Any]] = {
    "change-password": {"currentPassword": "a long password", "newPassword": "a new password"},
    "delete-account": {"password": "a long password"},
    "delete-post": {"postId": POST},
    "end-session": {"sessionId": USER},
    "follow": {"userIds": [USER]},
    "create-list": {"name": "x"},
    "lists": {},
    "list-timeline": {"id": LIST},
    "live-timeline": {"timelineId": USER},
    "live-thread": {"postId": POST},
    **{name: {"listId": LIST} for name in ("update-list", "delete-list")},
    "mark-read": {"upTo": "notification-00000000000001"},
    "new-followers": {"userIds": [USER]},
    "node": {"id": USER},
    "nodes": {"ids": [USER, POST]},
    "post": {"id": POST},
    "quote": {"quotedPostId": POST},
    "reply": {"replyToId": POST},
    "thread": {"id": POST},
    "report": {"subjectId": POST, "reason": "SPAM"},
    "unfollow": {"userIds": [USER]},
    **{name: {"postId": POST} for name in ("like", "unlike", "repost", "unrepost", "bookmark", "remove-bookmark")},
    **{name: {"userId": USER} for name in ("mute", "unmute", "block", "unblock")},
}


def test_every_example_is_in_the_playground() -> None:
    assert {example.name for example in examples()} == set(EXAMPLES)
    assert set(OPENED) <= set(EXAMPLES)


def test_every_example_is_run_by_a_test_here() -> None:
    source = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
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
    entries = (await alice.run("home"))["viewer"]["homeTimeline"]["entries"]
    assert len(entries["edges"]) == 30
    assert entries["pageInfo"]["hasNextPage"]
    states = {edge["node"]["author"]["relationship"]["state"] for edge in entries["edges"]}
    assert states <= {"YOU", "FOLLOWING", "MUTUAL"}
    more = (await alice.run("home", after=entries["pageInfo"]["endCursor"]))["viewer"]["homeTimeline"]["entries"]
    assert more["edges"][0]["node"]["createdAt"] < entries["edges"][-1]["node"]["createdAt"]


async def test_posts_and_reposts_in_the_home_timeline(alice: Alice) -> None:
    """A post has a text, and a repost has the reposted post."""
    edges = (await alice.run("home", first=100))["viewer"]["homeTimeline"]["entries"]["edges"]
    nodes = [edge["node"] for edge in edges]
    assert {node["__typename"] for node in nodes} == {"Post", "Repost"}
    assert all(node["text"] if node["__typename"] == "Post" else node["post"]["text"] for node in nodes)


async def test_followers_with_relations(alice: Alice) -> None:
    """Bob's newest followers include every kind of relationship to alice."""
    user = (await alice.run("followers-with-relations"))["user"]
    assert user["name"] == "Bob"
    shown = [(edge["node"]["login"], edge["node"]["relationship"]["state"]) for edge in user["followers"]["edges"]]
    assert shown[:5] == [
        ("alice", "YOU"),
        ("wei", "MUTUAL"),
        ("carol", "FOLLOWING"),
        ("erin", "FOLLOWED_BY"),
        ("xiaoming", "STRANGER"),
    ]


async def test_profile(alice: Alice) -> None:
    user = (await alice.run("profile"))["user"]
    assert (user["login"], user["name"], user["relationship"]["state"]) == ("wei", "伟", "MUTUAL")
    assert user["timeline"]["entries"]["edges"]
    assert user["following"]["totalCount"] == user["followingCount"]
    assert user["followersYouKnow"]["totalCount"] >= len(user["followersYouKnow"]["nodes"]) > 0


async def test_whats_new(alice: Alice) -> None:
    """The page contains exactly the entries that are newer than the cursor."""
    entries = (await alice.run("home"))["viewer"]["homeTimeline"]["entries"]
    third = entries["edges"][2]["cursor"]
    newer = (await alice.run("whats-new", before=third))["viewer"]["homeTimeline"]["entries"]
    assert [edge["cursor"] for edge in newer["edges"]] == [edge["cursor"] for edge in entries["edges"][:2]]
    assert (await alice.run("whats-new"))["viewer"]["homeTimeline"]["entries"]["edges"]


async def test_public_timeline(alice: Alice) -> None:
    """The newest posts are shown, including those of authors whom alice does not follow."""
    entries = (await alice.run("public-timeline"))["publicTimeline"]["entries"]
    assert [edge["node"]["__typename"] for edge in entries["edges"]] == ["Post"] * 10
    older = (await alice.run("public-timeline", after=entries["pageInfo"]["endCursor"]))["publicTimeline"]["entries"]
    assert older["edges"][0]["cursor"] < entries["edges"][-1]["cursor"]


async def test_search(alice: Alice) -> None:
    """The default words are in the demo's posts."""
    posts = (await alice.run("search"))["searchPosts"]["posts"]
    assert posts["edges"]
    found = (await alice.run("search", keywords=["今天"]))["searchPosts"]["posts"]["edges"]
    assert all("今天" in edge["node"]["text"] for edge in found)


async def test_search_users(alice: Alice, graph: Graph) -> None:
    """The user with the login comes first; names are found by their words. The worker has indexed the names."""
    await graph.indexing.finish()
    edges = (await alice.run("search-users"))["searchUsers"]["edges"]
    assert edges[0]["node"]["login"] == "bob"
    [found] = (await alice.run("search-users", text="伟"))["searchUsers"]["edges"]
    assert (found["node"]["login"], found["node"]["name"]) == ("wei", "伟")


async def test_log_in(alice: Alice) -> None:
    """The default variables log alice in."""
    credentials = (await alice.run("log-in"))["logIn"]["credentials"]
    assert credentials["viewer"]["user"]["login"] == "alice"
    assert credentials["token"]


async def test_publish(alice: Alice) -> None:
    published = (await alice.run("publish"))["publishPost"]
    assert published["userErrors"] == []
    top = (await alice.run("home"))["viewer"]["homeTimeline"]["entries"]["edges"][0]
    assert top["cursor"] == published["timelineEdge"]["cursor"]


async def test_a_thread(alice: Alice) -> None:
    """A reply and a quote are counted, and the thread shows the reply."""
    id_ = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    replied = (await alice.run("reply", replyToId=id_))["publishPost"]["postEdge"]["node"]
    assert replied["replyTo"] == {"id": id_, "repliesCount": 1}
    quoted = (await alice.run("quote", quotedPostId=replied["id"]))["publishPost"]["postEdge"]["node"]
    assert quoted["quotedPost"]["quotesCount"] == 1

    thread = (await alice.run("thread", id=id_))["post"]
    assert [edge["node"]["id"] for edge in thread["replies"]["edges"]] == [replied["id"]]
    below = (await alice.run("thread", id=replied["id"]))["post"]
    assert [post["id"] for post in below["ancestors"]] == [below["threadRoot"]["id"]] == [id_]


async def test_follow(alice: Alice) -> None:
    """Each id has an outcome, and the relationship is the one after the change."""
    followees = [ids.encode(ids.Kind.USER, alice.people[login]) for login in ("xiaoming", "bob")]
    answer = (await alice.run("follow", userIds=followees))["followUsers"]
    assert [result["outcome"] for result in answer["results"]] == ["FOLLOWED", "ALREADY_FOLLOWING"]
    assert answer["results"][0]["user"]["relationship"]["state"] == "FOLLOWING"


async def test_unfollow(alice: Alice) -> None:
    """Each id has an outcome, and the relationship is the one after the change."""
    followees = [ids.encode(ids.Kind.USER, alice.people[login]) for login in ("bob", "xiaoming")]
    answer = (await alice.run("unfollow", userIds=followees))["unfollowUsers"]
    assert [result["outcome"] for result in answer["results"]] == ["UNFOLLOWED", "NOT_FOLLOWING"]
    assert answer["results"][0]["user"]["relationship"]["state"] == "FOLLOWED_BY"


async def test_the_examples_about_likes(alice: Alice) -> None:
    """A like is counted and listed until it is taken back."""
    id_ = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    post = (await alice.run("like", postId=id_))["likePost"]["post"]
    assert (post["likesCount"], post["viewerHasLiked"]) == (1, True)
    [edge, *before] = (await alice.run("liked-posts"))["viewer"]["likedPosts"]["edges"]
    assert edge["node"]["id"] == id_
    assert edge["node"]["likes"]["edges"][0]["node"]["login"] == "alice"
    assert (await alice.run("unlike", postId=id_))["unlikePost"]["post"]["likesCount"] == 0
    assert (await alice.run("liked-posts"))["viewer"]["likedPosts"]["edges"][: len(before)] == before


async def test_the_examples_about_reposts(alice: Alice) -> None:
    """A repost is an entry of the home timeline, with its own id, until it is undone."""
    id_ = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    edge = (await alice.run("repost", postId=id_))["repostPost"]["timelineEdge"]
    assert (edge["node"]["post"]["id"], edge["node"]["post"]["repostsCount"]) == (id_, 1)
    top = (await alice.run("home"))["viewer"]["homeTimeline"]["entries"]["edges"][0]
    assert (top["cursor"], top["node"]["id"]) == (edge["cursor"], edge["node"]["id"])
    found = (await alice.run("node", id=edge["node"]["id"]))["node"]
    assert (found["__typename"], found["post"]["id"]) == ("Repost", id_)
    undone = (await alice.run("unrepost", postId=id_))["unrepostPost"]
    assert (undone["deletedRepostId"], undone["post"]["repostsCount"]) == (edge["node"]["id"], 0)
    assert (await alice.run("node", id=edge["node"]["id"]))["node"] is None


async def test_the_variables_of_the_playground_name_posts_and_not_reposts(alice: Alice) -> None:
    """This holds even if the newest entries of the viewer and of the home timeline are reposts."""
    written = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    for login in ("bob", "alice"):
        user = alice.people[login]
        await alice.graph.reposts.repost(alice.graph.visibility.of(user), user, ids.number(ids.Kind.POST, written) or 0)
    given = {name: json.loads(text) for name, text in (await variables(alice.graph, "alice")).items()}
    assert given["delete-post"] == given["unrepost"] == {"postId": written}
    for name in ("like", "unlike", "bookmark", "remove-bookmark", "repost"):
        assert (await alice.run("post", id=given[name]["postId"]))["post"] is not None


async def test_the_examples_about_bookmarks(alice: Alice) -> None:
    """A bookmarked post is listed until the bookmark is removed."""
    id_ = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    assert (await alice.run("bookmark", postId=id_))["bookmarkPost"]["post"]["viewerHasBookmarked"] is True
    assert [each["node"]["id"] for each in (await alice.run("bookmarks"))["viewer"]["bookmarks"]["edges"]] == [id_]
    assert (await alice.run("remove-bookmark", postId=id_))["removeBookmark"]["post"]["viewerHasBookmarked"] is False
    assert (await alice.run("bookmarks"))["viewer"]["bookmarks"]["edges"] == []


async def test_mute_and_block(alice: Alice) -> None:
    """The relationship and the viewer's own lists show both, until they are undone."""
    bob = ids.encode(ids.Kind.USER, alice.people["bob"])
    for name, undo, field, listed in (
        ("mute", "unmute", "muting", "muted-users"),
        ("block", "unblock", "blocking", "blocked-users"),
    ):
        payload = (await alice.run(name, userId=bob))[f"{name}User"]
        assert (payload["userErrors"], payload["user"]["relationship"][field]) == ([], True)
        page = (await alice.run(listed))["viewer"][listed.replace("-users", "Users")]
        assert [edge["node"]["login"] for edge in page["edges"]] == ["bob"]
        assert (await alice.run(undo, userId=bob))[f"{undo}User"]["user"]["relationship"][field] is False
        page = (await alice.run(listed))["viewer"][listed.replace("-users", "Users")]
        assert page["edges"] == []


async def test_viewer(alice: Alice) -> None:
    user = (await alice.run("viewer"))["viewer"]["user"]
    assert (user["login"], user["name"]) == ("alice", "Alice")


async def test_the_examples_about_one_post(alice: Alice) -> None:
    """A post is found by its id until its author deletes it."""
    id_ = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    assert (await alice.run("post", id=id_))["post"]["author"]["login"] == "alice"
    assert (await alice.run("node", id=id_))["node"]["__typename"] == "Post"
    assert (await alice.run("delete-post", postId=id_))["deletePost"]["deletedPostId"] == id_
    assert (await alice.run("post", id=id_)) == {"post": None}


async def test_nodes(alice: Alice) -> None:
    """Objects of all types are returned in the order of the requested ids."""
    bob = ids.encode(ids.Kind.USER, alice.people["bob"])
    post = (await alice.run("publish"))["publishPost"]["timelineEdge"]["node"]["id"]
    nodes = (await alice.run("nodes", ids=[post, POST, bob]))["nodes"]
    assert [node and node["__typename"] for node in nodes] == ["Post", None, "User"]


async def test_notifications(alice: Alice) -> None:
    """New followers are unread until they are marked as read."""
    await alice.graph.follows.follow(alice.people["xiaoming"], [alice.people["alice"]])
    feed = (await alice.run("notifications"))["viewer"]["notifications"]
    [edge, *_] = feed["entries"]["edges"]
    assert (edge["node"]["__typename"], edge["node"]["actors"][0]["login"]) == ("FollowNotification", "xiaoming")
    assert (feed["unreadCount"], edge["node"]["isRead"]) == (len(feed["entries"]["edges"]), False)
    marked = (await alice.run("mark-read", upTo=edge["cursor"]))["markNotificationsRead"]
    assert marked == {
        "notifications": {"id": feed["id"], "unreadCount": 0, "hasMoreUnread": False},
        "userErrors": [],
    }


async def test_rate_limit(alice: Alice) -> None:
    """The rate limit is null without a server that has rate limits."""
    assert await alice.run("rate-limit") == {"rateLimit": None}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_comments_fit_beside_the_toolbar_of_the_playground(name: str) -> None:
    comments = [line for line in EXAMPLES[name].read_text("utf-8").splitlines() if line.startswith("#")]
    assert comments
    assert max(map(len, comments)) <= 56
