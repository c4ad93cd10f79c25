"""A steady load of changes of all kinds."""

import asyncio
from dataclasses import dataclass, field
from random import Random

from graph import Graph, keys
from graph.errors import ArchiveUnavailable, GraphError

PAUSE = 0.01


@dataclass
class Load:
    """Users who publish, delete, follow and unfollow. Counts the accepted and the failed changes.

    `unreachable` counts deletions of posts that only the archive holds, while the archive does not answer.
    """

    graph: Graph
    users: list[int]
    choice: Random = field(default_factory=lambda: Random(12))  # noqa: S311
    posts: list[tuple[int, int]] = field(default_factory=list)
    written: int = 0
    refused: int = 0
    unreachable: int = 0

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            try:
                await self.write()
                self.written += 1
            except GraphError:
                self.refused += 1
            await asyncio.sleep(PAUSE)

    async def write(self) -> None:
        """Make a random change."""
        user, other = self.choice.sample(self.users, 2)
        kind = self.choice.random()
        if kind < 0.6 or not self.posts:
            self.posts.append((user, (await self.graph.posts.publish(user, f"post {self.written}")).id))
        elif kind < 0.7:
            await self.delete(*self.posts.pop(self.choice.randrange(len(self.posts))))
        elif kind < 0.9:
            await self.graph.follows.follow(user, [other])
        else:
            await self.graph.follows.unfollow(user, [other])

    async def delete(self, author: int, post: int) -> None:
        """Delete a post. Its text is needed for the event, so a cold post needs the archive."""
        try:
            await self.graph.posts.delete(author, post)
        except ArchiveUnavailable:
            assert await self.graph.store.run("EXISTS", keys.post(post)) == 0, "the store holds the post"
            self.unreachable += 1
