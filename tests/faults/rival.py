"""A program in which two users follow, unfollow, block and unblock each other through GraphQL, in any order.

Its arguments are the store's URL, the ids of the two users, and a seed. Each line of its input is a round: the number
of changes, and their kinds. It answers each round with a line.
"""

import asyncio
import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from resolvers import ids
from resolvers.context import Context, Viewer
from schema import schema
from tests.faults.small_world import CHEAP
from tests.support.graphs import open_graph

FOLLOWS = (
    "mutation ($id: ID!) { %s(input: {userIds: [$id]}) { results { outcome error { code } } userErrors { code } } }"
)
DOCUMENTS = {
    "block": "mutation ($id: ID!) { blockUser(input: {userId: $id}) { userErrors { code } } }",
    "follow": FOLLOWS % "followUsers",
    "unfollow": FOLLOWS % "unfollowUsers",
    "unblock": "mutation ($id: ID!) { unblockUser(input: {userId: $id}) { userErrors { code } } }",
}
AT_ONCE = 5


async def compete(url: str, users: tuple[int, int], seed: int) -> None:
    """Make the changes of each round, several at a time."""
    graph = await open_graph(url, CHEAP)
    rng = random.Random(seed)  # noqa: S311 - reproducible

    async def change(kinds: Sequence[str]) -> None:
        user, other = rng.sample(users, 2)
        context = Context(graph, Viewer(user, "", datetime.max.replace(tzinfo=UTC)), lambda session: "")
        document = DOCUMENTS[rng.choice(kinds)]
        result = await schema.execute(document, {"id": ids.encode(ids.Kind.USER, other)}, context)
        assert result.errors is None, result.errors

    async def some(kinds: Sequence[str], times: int) -> None:
        for _ in range(times):
            await change(kinds)

    print("ready", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        times, *kinds = line.split()
        await asyncio.gather(*(some(kinds, int(times) // AT_ONCE) for _ in range(AT_ONCE)))
        print("done", flush=True)
    await graph.close()


if __name__ == "__main__":
    alice, bob, seed = map(int, sys.argv[2:])
    asyncio.run(compete(sys.argv[1], (alice, bob), seed))
