"""A world of three users with follows and posts, mutations to interrupt, and a reading of all that clients see."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graph import Graph, Tuning
from graph.errors import Rejected
from graph.paging import Window
from graph.visibility.views import SYSTEM
from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from tests.support.graph_worlds import counts_of

PASSWORD = "correct horse"
CHEAP = Tuning(argon2_time_cost=1, argon2_memory_kib=8, argon2_parallelism=1)
EVERYTHING = Window(100, forward=True)


@dataclass(frozen=True)
class Mutation:
    """A mutation as a client sends it. `%(alice)s`, `%(bob)s`, `%(carol)s` and `%(post)s` stand for global ids."""

    document: str
    by: str | None = "alice"


MUTATIONS = {
    "publish": Mutation(
        'mutation { publishPost(input: {text: "new", idempotencyKey: "k"}) { post { id } userErrors { code } } }'
    ),
    "follow": Mutation(
        'mutation { followUsers(input: {userIds: ["%(carol)s", "%(bob)s"]})'
        " { results { outcome error { code } } userErrors { code } } }"
    ),
    "unfollow": Mutation(
        'mutation { unfollowUsers(input: {userIds: ["%(bob)s"]})'
        " { results { outcome error { code } } userErrors { code } } }"
    ),
    "delete": Mutation('mutation { deletePost(input: {postId: "%(post)s"}) { deletedPostId userErrors { code } } }'),
    "signUp": Mutation(
        'mutation { signUp(input: {login: "dave", password: "correct horse"})'
        " { credentials { viewer { user { login } } } userErrors { code } } }",
        by=None,
    ),
}


async def build(graph: Graph) -> None:
    """Create and project the world: Alice follows Bob, Bob and Carol follow Alice; all have posts and home caches."""
    users = {login: (await graph.users.sign_up(login, PASSWORD)).id for login in ("alice", "bob", "carol")}
    for follower, followee in (("alice", "bob"), ("bob", "alice"), ("carol", "alice")):
        await graph.follows.follow(users[follower], [users[followee]])
    for login, text in (("alice", "first"), ("bob", "second"), ("alice", "third"), ("carol", "fourth")):
        await graph.posts.publish(users[login], text)
    await graph.worker().drain()
    for user in users.values():
        await graph.timelines.home(user, EVERYTHING)
    await graph.timelines.wait_for_rebuilds()


async def perform(graph: Graph, name: str, before: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Perform a mutation through GraphQL and return its data. Call `before` just before it."""
    mutation = MUTATIONS[name]
    users = dict(
        zip(("alice", "bob", "carol"), await graph.users.ids_of_logins(["alice", "bob", "carol"]), strict=True)
    )
    names = {login: ids.encode(ids.Kind.USER, user or 0) for login, user in users.items()}
    names["post"] = ids.encode(ids.Kind.POST, await post_id(graph, users["alice"] or 0, "third"))
    viewer = None
    if mutation.by:
        session = await graph.sessions.start(users[mutation.by] or 0)
        viewer = Viewer(session.user, session.id, session.expires_at)
    context = Context(graph, viewer, lambda session: session.id)
    before()
    result = await schema.execute(mutation.document % names, context_value=context)
    assert result.errors is None, result.errors
    return dict(result.data or {})


async def post_id(graph: Graph, author: int, text: str) -> int:
    """Return the id of a post by its author and text, even if it was deleted meanwhile."""
    known = await graph.store.run("GET", f"test:{{{author}}}:{text}")
    if known is None:
        [page] = await graph.timelines.user(SYSTEM, [author], EVERYTHING)
        known = next(post.id for post in page.items if post.text == text)
        await graph.store.run("SET", f"test:{{{author}}}:{text}", known)
    return int(known)


async def reading(graph: Graph) -> dict[str, Any]:
    """Return everything that clients can read of the world, without ids and times."""
    logins = ["alice", "bob", "carol", "dave"]
    users = {
        login: user
        for login, user in zip(logins, await graph.users.ids_of_logins(logins), strict=True)
        if user is not None
    }
    names = {user: login for login, user in users.items()}
    seen: dict[str, Any] = {}
    for login, user in users.items():
        [profile] = await graph.users.get_many([user])
        [followers] = await graph.follows.followers(SYSTEM, [user], EVERYTHING)
        [following] = await graph.follows.following(SYSTEM, [user], EVERYTHING)
        [own] = await graph.timelines.user(SYSTEM, [user], EVERYTHING)
        home = await graph.timelines.home(user, EVERYTHING)
        [counts] = await counts_of(graph, [user])
        seen[login] = {
            "profile": profile and (profile.login, profile.name),
            "followers": sorted(names[follow.user] for follow in followers.items),
            "following": sorted(names[follow.user] for follow in following.items),
            "own": [post.text for post in own.items],
            "home": [post.text for post in home.items],
            "counts": (counts.followers, counts.following, counts.posts),
            "logs in": await logs_in(graph, login),
        }
    return seen


async def logs_in(graph: Graph, login: str) -> bool:
    """Return True if the password is accepted."""
    try:
        return bool(await graph.users.check_password(login, PASSWORD))
    except Rejected:
        return False
