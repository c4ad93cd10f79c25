"""Actions of users that notify others, and their reversal."""

from graph import Graph


async def act(graph: Graph, name: str, user: int, other: int, post: int) -> None:
    """Like or repost a post of another user, or follow this user."""
    if name == "like":
        await graph.likes.like(user, post)
    elif name == "follow":
        await graph.follows.follow(user, [other])
    else:
        await graph.reposts.repost(graph.visibility.of(user), user, post)


async def take_back(graph: Graph, name: str, user: int, other: int, post: int) -> None:
    """Undo the action of `act`."""
    if name == "like":
        await graph.likes.unlike(user, post)
    elif name == "follow":
        await graph.follows.unfollow(user, [other])
    else:
        await graph.reposts.unrepost(graph.visibility.of(user), user, post)
