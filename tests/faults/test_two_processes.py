"""Two processes follow and unfollow the same user concurrently."""

import asyncio
import sys
from pathlib import Path

import pytest

from graph import Graph
from graph.log.events import Followed, Unfollowed
from graph.model import MAX_NUMBER
from graph.visibility import SYSTEM
from tests.faults.small_world import EVERYTHING, PASSWORD

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TIMES = 1000


async def test_two_processes_that_follow_and_unfollow_agree_in_the_end(graph: Graph) -> None:
    """After a thousand changes by each, both sides of the follow match the last event, before and after a drain."""
    alice, bob = [(await graph.users.sign_up(login, PASSWORD)).id for login in ("alice", "bob")]
    command = ["-m", "tests.faults.toggler", graph.store.url, str(alice), str(bob), str(TIMES)]
    processes = [await asyncio.create_subprocess_exec(sys.executable, *command, cwd=ROOT) for _ in range(2)]
    assert [await process.wait() for process in processes] == [0, 0]

    events = [event async for event in graph.log.replay(0, MAX_NUMBER)]
    last = [event for event in events if isinstance(event.body, Followed | Unfollowed)][-1]
    expected = [last.number] if isinstance(last.body, Followed) else []
    for _ in range(2):
        [following] = await graph.follows.following(SYSTEM, [alice], EVERYTHING)
        [followers] = await graph.follows.followers(SYSTEM, [bob], EVERYTHING)
        assert [follow.number for follow in following.items] == expected
        assert [follow.number for follow in followers.items] == expected
        await graph.worker().drain()
