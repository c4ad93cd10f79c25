"""Two processes concurrently change the relationship between the same two users."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from graph import Graph
from graph.log.events import EventBody, Followed, Unfollowed
from graph.model import MAX_NUMBER
from graph.visibility.views import SYSTEM
from tests.faults.small_world import EVERYTHING, PASSWORD
from tests.support.graph_worlds import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EVERY_CHANGE, WITHOUT_UNBLOCK = "block follow unfollow unblock", "block follow unfollow"


async def test_follows_and_blocks_of_two_processes_agree_and_the_block_wins(
    graph: Graph, *, long_profile: bool
) -> None:
    """Both users see the same state after any changes. Nobody unblocks in the last round, so blocks remain.

    In the first round, they only follow and unfollow each other: both sides then match the last event. In the long
    profile, each round has 1,000 changes.
    """
    alice, bob = [(await graph.users.sign_up(login, PASSWORD)).id for login in ("alice", "bob")]
    async with AsyncExitStack() as stack:
        rivals = [await stack.enter_async_context(rival(graph, alice, bob, seed)) for seed in range(2)]
        for process in rivals:
            await answered(process, "ready")
        for changes in ("follow unfollow", EVERY_CHANGE, EVERY_CHANGE, WITHOUT_UNBLOCK):
            for process in rivals:
                assert process.stdin is not None
                process.stdin.write(f"{500 if long_profile else 40} {changes}\n".encode())
            if changes == WITHOUT_UNBLOCK:
                await graph.blocks.block(alice, bob)
            for process in rivals:
                await answered(process, "done")
            for _ in range(2):
                await check_agreement(graph, alice, bob)
                await graph.worker().drain()
            if changes == "follow unfollow":
                await check_last(graph, alice, bob)
                await check_last(graph, bob, alice)

    [relationship] = await graph.relationships.between(alice, [bob])
    assert (relationship.blocking, relationship.state.value) == (True, "STRANGER")
    await graph.blocks.unblock(alice, bob)
    await graph.blocks.unblock(bob, alice)
    [relationship] = await graph.relationships.between(alice, [bob])
    assert (relationship.blocking, relationship.blocked_by, relationship.state.value) == (False, False, "STRANGER")


async def check_last(graph: Graph, user: int, other: int) -> None:
    """Check that a user follows the other if the last event says so."""
    events = [event async for event in graph.log.replay(0, MAX_NUMBER)]
    last = [event for event in events if follow_of(event.body) == (user, other)][-1]
    expected = [last.number] if isinstance(last.body, Followed) else []
    [following] = await graph.follows.following(SYSTEM, [user], EVERYTHING)
    assert [follow.number for follow in following.items] == expected


def follow_of(body: EventBody) -> tuple[int, int] | None:
    """Return the follower and the followee of an event that begins or ends a follow."""
    return (body.follower, body.followee) if isinstance(body, Followed | Unfollowed) else None


@asynccontextmanager
async def rival(graph: Graph, alice: int, bob: int, seed: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process that changes the relationship between two users, round by round."""
    command = ["-m", "tests.faults.rival", graph.store.url, str(alice), str(bob), str(seed)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT, stdin=pipe, stdout=pipe)
    try:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answered(process: asyncio.subprocess.Process, answer: str) -> None:
    """Wait until a process prints a line."""
    assert process.stdout is not None
    assert (await asyncio.wait_for(process.stdout.readline(), 10 * PATIENCE)).decode().strip() == answer


async def check_agreement(graph: Graph, alice: int, bob: int) -> None:
    """Check that both users see the same follows and blocks, and that no follow crosses a block."""
    for user, other in ((alice, bob), (bob, alice)):
        [mine] = await graph.relationships.between(user, [other])
        [theirs] = await graph.relationships.between(other, [user])
        assert mine.following_number == theirs.followed_by_number
        assert (mine.blocking, mine.blocked_by) == (theirs.blocked_by, theirs.blocking)
        assert mine.state.value == "STRANGER" or not (mine.blocking or mine.blocked_by)
        [following] = await graph.follows.following(SYSTEM, [user], EVERYTHING)
        [followers] = await graph.follows.followers(SYSTEM, [other], EVERYTHING)
        assert [each.number for each in following.items] == [each.number for each in followers.items]
