"""The root type of queries."""

import strawberry

from executor.fields import single
from resolvers import nodes, posts, rates, searches, timelines, users, viewers
from schema.blocks import UserConnection
from schema.node import Node
from schema.post import Post
from schema.rate_limit import RateLimit
from schema.search import PostSearch
from schema.timeline import Timeline
from schema.user import User
from schema.viewer import Viewer


@strawberry.type(description="The root of all queries.")
class Query:
    """There is no root value."""

    viewer: Viewer | None = single(
        viewers.viewer,
        description="The user who is logged in, with the data that only this user can see. Null for anonymous "
        "requests; if null for any other request, `errors` gives the reason.",
    )
    node: Node | None = single(
        nodes.node,
        description="Look up an object by its global id. Null if it does not exist or is not visible to the viewer.",
    )
    nodes: list[Node | None] = single(
        nodes.nodes,
        description="Look up objects by their global ids, in the order of the ids. An entry is null where `node` would "
        "be null.",
    )
    user: User | None = single(
        users.user,
        references=users.user_reference,
        description="Look up a user by id or login. Null if the user does not exist or is suspended.",
    )
    post: Post | None = single(
        posts.post,
        description="Look up a post by id. Null if it does not exist, was deleted or is hidden from the viewer.",
    )
    public_timeline: Timeline | None = single(
        timelines.public_timeline,
        description="The newest posts of all users, without reposts or replies to others. Posts by users whom the "
        "viewer has muted or blocked, or who have blocked the viewer, are left out. New posts appear about half a "
        "second after they are published. Null if the timeline cannot be read; `errors` gives the reason.",
    )
    search_posts: PostSearch | None = single(
        searches.search_posts,
        description="Search all posts, including old ones, by author, words, place and time. Null if the search is "
        "not possible; `errors` gives the reason.",
    )
    search_users: UserConnection | None = single(
        searches.search_users,
        description="Search users by login and name. Each word of `text` must be the beginning of the login or of a "
        "word of the name; in scripts without spaces, such as Chinese, the name must contain the word. The user whose "
        "login is exactly `text` comes first, followed by the other matches, newest first. Requires `first` or `last`. "
        "The server scans at most 2,000 users for a page, so a page may have fewer users than requested, or none, "
        "before the end: continue while `hasNextPage` is true, or `hasPreviousPage` with `last`. Null if the search is "
        "not possible; `errors` gives the reason.",
    )
    rate_limit: RateLimit | None = single(
        rates.rate_limit,
        description="The rate limit of the viewer or, for anonymous requests, of the client's network. Null if the "
        "server has no rate limits.",
    )
