"""A program that follows and unfollows a user repeatedly through GraphQL.

Its arguments are the store's URL, the ids of follower and followee, and the number of mutations.
"""

import asyncio
import sys
from datetime import UTC, datetime

from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from tests.faults.small_world import CHEAP
from tests.support.graphs import open_graph

DOCUMENTS = [
    "mutation ($id: ID!) { follow(input: {userIds: [$id]}) { results { outcome } userErrors { code } } }",
    "mutation ($id: ID!) { unfollow(input: {userIds: [$id]}) { results { outcome } userErrors { code } } }",
]


async def toggle(url: str, follower: int, followee: int, times: int) -> None:
    """Follow and unfollow in turn."""
    graph = await open_graph(url, CHEAP)
    viewer = Viewer(follower, "", datetime.max.replace(tzinfo=UTC))
    for n in range(times):
        context = Context(graph, viewer, lambda session: "")
        result = await schema.execute(DOCUMENTS[n % 2], {"id": ids.encode(ids.Kind.USER, followee)}, context)
        assert result.errors is None, result.errors
    await graph.close()


if __name__ == "__main__":
    asyncio.run(toggle(sys.argv[1], *map(int, sys.argv[2:])))
