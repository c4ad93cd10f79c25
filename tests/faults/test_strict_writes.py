"""With `strict`, a cluster loses none of 100,000 acknowledged writes during any failures of its primaries."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graph import keys
from graph.log.numbers import number_of as number_of_entry
from graph.tasks import end
from resolvers.ids import decode
from tests.faults.checker.client import Client
from tests.faults.checker.disasters import Disasters, killed, paused, separated, separated_from_nodes
from tests.faults.checker.listeners import EventsListener
from tests.faults.checker.reading import FOLLOWS, POSTS, number, pages
from tests.faults.checker.system import system_in
from tests.support.cluster import Node
from tests.support.partitions import PartitionableCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PIECES = 4
WRITES = 25_000  # acknowledged posts, follows and unfollows in each piece
WRITERS = 16
USERS = 30
SIGN_UPS = 4  # at once: passwords are hashed two at a time
BATCH = 10  # posts of a request, each with its own idempotency key
FAILURES = (killed, paused, separated, separated_from_nodes)
FAULTS = len(FAILURES)  # at least, in each piece
SETTLE_SECONDS = 600.0  # workers project the last minutes again after each failover
RETRY_SECONDS = 0.1
POST = "p{number}: publishPost(input: {{text: $t{number}, idempotencyKey: $t{number}}}) {{ post {{ id }} }}"
CHANGE = "change: {field}(input: {{userIds: $users}}) {{ results {{ outcome }} userErrors {{ code }} }}"


class Writer(Client):
    """A user who publishes, follows and unfollows in batches, and repeats what was not acknowledged.

    `posts` are the texts of acknowledged posts, and `following` the users of acknowledged follows. `writes` is the
    number of acknowledged posts, follows and unfollows.
    """

    def __init__(self, login: str, url: str) -> None:
        super().__init__(login, url)
        self.posts: dict[int, str] = {}
        self.following: set[str] = set()
        self.writes = 0
        self._texts = 0

    async def write(self, others: list[str]) -> None:
        """Make a change, and repeat it until all of it is acknowledged."""
        texts = [f"{self.login} writes {self._texts + n}" for n in range(BATCH)]
        self._texts += BATCH
        following = set() if self.following else set(others)
        while texts or self.following != following:
            try:
                texts = await self._attempt(texts, others, following)
            except httpx.TransportError:
                self.note("no answer")
                await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(self, texts: list[str], others: list[str], following: set[str]) -> list[str]:
        """Send a request with the texts that are not acknowledged yet. Return those that still are not."""
        fields = [POST.format(number=n) for n in range(len(texts))]
        declared = [f"$t{n}: String!" for n in range(len(texts))]
        variables: dict[str, object] = {f"t{n}": text for n, text in enumerate(texts)}
        if self.following != following:
            fields.append(CHANGE.format(field="followUsers" if following else "unfollowUsers"))
            declared.append("$users: [ID!]!")
            variables["users"] = others
        response = await self._client.post(
            "/graphql",
            json={"query": f"mutation ({', '.join(declared)}) {{ {' '.join(fields)} }}", "variables": variables},
            headers={"authorization": f"Bearer {self.token}"},
        )
        answer = response.json()
        for error in answer.get("errors", []):
            self.note(error.get("extensions", {}).get("code", "none"))
        return self._take(answer.get("data") or {}, texts, following)

    def _take(self, data: dict[str, Any], texts: list[str], following: set[str]) -> list[str]:
        """Record what was acknowledged."""
        made = {text: number(field["post"]) for n, text in enumerate(texts) if (field := data.get(f"p{n}"))}
        self.posts |= {post: text for text, post in made.items()}
        self.writes += len(made)
        if change := data.get("change"):
            assert not change["userErrors"]
            self.writes += len(change["results"])
            self.following = set(following)
        return [text for text in texts if text not in made]


@pytest.mark.parametrize("piece", range(PIECES))
async def test_strict_loses_no_acknowledged_write(piece: int, tmp_path: Path, long_profile: bool) -> None:
    """Each post can be read once and was sent on a stream, and each user has the acknowledged follows."""
    if not long_profile:
        pytest.skip("takes minutes: needs --long")
    with PartitionableCluster(tmp_path / "cluster", replicas=2) as cluster:
        async with system_in(tmp_path, cluster.url, FANLINE_DURABILITY="strict") as system:
            users = [Writer(f"user{index}", system.url) for index in range(USERS)]
            for some in batched(users, SIGN_UPS):
                await asyncio.gather(*(user.join() for user in some))
            writers = users[:WRITERS]
            stream = EventsListener(writers[0], [writer.id for writer in writers])
            listening = asyncio.create_task(stream.run())
            await stream.connected.wait()
            disasters = Disasters(cluster, FAILURES, piece * FAULTS)
            await write_through(disasters, writers, [user.id for user in users])
            check_log(disasters.owner(keys.LOG), writers)
            deadline = time.monotonic() + SETTLE_SECONDS
            await asyncio.gather(*(compare(writer, deadline) for writer in writers))
            print(f"all readable after {SETTLE_SECONDS + time.monotonic() - deadline:.0f} s")
            await compare_stream(writers, stream)
            code, output = await system.repair_check()
            assert code == 0, output
            await end([listening])
            for user in users:
                await user.close()


def check_log(primary: Node, writers: list[Writer]) -> None:
    """Assert that the log holds all acknowledged posts."""
    log = {number_of_entry(entry) for entry, _ in primary.run("XRANGE", keys.LOG, "-", "+")}
    missing = {post for writer in writers for post in writer.posts} - log
    print(f"{len(log)} events in the log, {len(missing)} acknowledged posts are missing")
    assert not missing


def batched(users: list[Writer], size: int) -> Iterator[list[Writer]]:
    """Yield the users in groups of a size."""
    for start in range(0, len(users), size):
        yield users[start : start + size]


async def write_through(disasters: Disasters, writers: list[Writer], users: list[str]) -> None:
    """Write until there are enough writes and disasters."""

    async def write(writer: Writer) -> None:
        others = [user for user in users if user != writer.id]
        while sum(each.writes for each in writers) < WRITES or len(disasters.happened) < FAULTS:
            if failing.done():
                failing.result()
            await writer.write(others)

    began = time.monotonic()
    failing = asyncio.create_task(disasters.run())
    await asyncio.gather(*map(write, writers))
    disasters.stopped = True
    await failing
    number, seconds = sum(writer.writes for writer in writers), time.monotonic() - began
    posts = sum(len(writer.posts) for writer in writers)
    answers = sum((Counter(writer.answers) for writer in writers), Counter[str]())
    print(f"{number} acknowledged ({posts} posts) in {seconds:.0f} s, {disasters.happened}, {dict(answers)}")


async def compare(writer: Writer, deadline: float) -> None:
    """Assert that a user's posts and follows are the acknowledged ones, once workers have caught up."""
    acknowledged = sorted(writer.posts.items()), sorted(writer.following)
    while True:
        posts = await pages(writer, POSTS % "timeline", "user", "timeline", "entries")
        followed = await pages(writer, FOLLOWS % "following", "user", "following")
        found = sorted((number(node), node["text"]) for node in posts), sorted(node["id"] for node in followed)
        if found == acknowledged or time.monotonic() > deadline:
            break
        await asyncio.sleep(1)
    assert found == acknowledged


async def compare_stream(writers: list[Writer], stream: EventsListener) -> None:
    """Assert that a stream has all posts and follows and, without a `Gap`, each post once and in order."""
    acknowledged = {post for writer in writers for post in writer.posts}
    follows = {
        tuple(decode(each).numbers[0] for each in (writer.id, user)) for writer in writers for user in writer.following
    }
    deadline = time.monotonic() + SETTLE_SECONDS
    while missing := (acknowledged - stream.received.keys(), follows ^ stream.follows):
        if not any(missing) or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.1)
    assert missing == (set(), set())
    if not stream.gaps:
        assert stream.published == Counter(acknowledged)
        assert all(posts == sorted(posts) for posts in stream.by_author.values())
    print("gaps:", stream.gaps)
