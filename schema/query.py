"""The root of queries."""

import strawberry

from executor.fields import single
from resolvers import nodes, posts, rates, users
from schema.node import Node
from schema.post import Post
from schema.rate_limit import RateLimit
from schema.user import User


@strawberry.type(description="What can be asked for.")
class Query:
    """Has no value of its own."""

    viewer: User | None = single(
        users.viewer, references=users.viewer_reference, description="The person who is logged in; null if nobody is."
    )
    node: Node | None = single(
        nodes.node,
        description="Whatever has this global id; null if there is nothing, or nothing that concerns the viewer.",
    )
    nodes: list[Node | None] = single(
        nodes.nodes, description="Whatever has these global ids, in their order, with null as in `node`."
    )
    user: User | None = single(
        users.user, references=users.user_reference, description="A person by id or login; null if there is none."
    )
    post: Post | None = single(posts.post, description="A post; null if there is none or it was deleted.")
    rate_limit: RateLimit | None = single(
        rates.rate_limit, description="The points that are left to spend; null while the server does not limit rates."
    )
