"""Attacks with many streams of one viewer, whose events are caused by strangers."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from graph.log.events import PostPublished
from resolvers import ids
from server.embedded import Durability, EmbeddedStore
from tests.attacks.clients import open_socket, receive, subscribe
from tests.attacks.crowds import Read
from tests.attacks.victim import Victim, ask
from tests.attacks.world import LOUD, World, seed_world
from tests.conftest import CHEAP, need
from tests.support.graphs import open_graph

pytestmark = pytest.mark.slow

STREAMS = 100
SOCKETS = 5
SECONDS = 25
"""How long each phase takes."""
UNREAD = 150
GENEROUS = {"FANLINE_MAX_STREAMS_PER_FIELD": "1000", "FANLINE_POINTS_PER_MINUTE": "200000"}
"""Starting all streams at once takes more points than usual."""
NODE = """id __typename isRead actors(limit: 10) { login }
  ... on PostNotification { post { text author { login name } } }"""
FEED = f"feed {{ unreadCount entries(first: $n) {{ nodes {{ {NODE} }} }} }}"
STREAM = f"""subscription ($n: Int!) {{ notifications {{ ... on NotificationAdded {{
  @: cursor edge {{ node {{ {NODE} }} }} {FEED}
}} }} }}"""
HOME = """{ viewer { homeTimeline { entries(first: 20) { edges { cursor node {
    id author { login name } ... on Post { text } } } } } } }"""
REPLY = "mutation ($input: PublishPostInput!) { publishPost(input: $input) { post { id } userErrors { code } } }"


async def seed(url: str) -> tuple[World, str]:
    """Seed a world in which `loud` has many unread notifications. Return it with a post of `loud`."""
    world = await seed_world(url)
    graph = await open_graph(url, CHEAP)
    try:
        loud, *fans = ids.numbers(ids.Kind.USER, world.users[: UNREAD + 1]) or []
        mentions = [PostPublished(fans[at % 100], f"hello {at}", mentions=(loud,)) for at in range(UNREAD)]
        for start in range(0, UNREAD, 50):
            await graph.commit(mentions[start : start + 50])
        post = await graph.posts.publish(loud, "a post")
        await graph.worker().drain()
        return world, ids.encode(ids.Kind.POST, post.id)
    finally:
        await graph.close()


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, is_quick: bool) -> Iterator[tuple[str, World, str]]:
    """Yield the URL of a store with that world, the world and a post of `loud`."""
    if is_quick:
        pytest.skip("measures CPU time for minutes: needs --long")
    need(sys.platform == "linux", "Linux, whose clocks show the CPU time of a process")
    with EmbeddedStore(tmp_path_factory.mktemp("attacked"), Durability.RELAXED) as store:
        with redis.Redis.from_url(store.url) as client:
            client.config_set("appendonly", "no")
        yield store.url, *asyncio.run(seed(store.url))


def largest(victim: Victim) -> int:
    """Return the largest page of notifications that an event may contain."""
    low, high = 0, 101
    with open_socket(victim, victim.world.tokens[LOUD]) as opened:
        while high - low > 1:
            middle = (low + high) // 2
            subscribe(opened, f"{middle}", STREAM.replace("@", f"a{middle}"), {"n": middle})
            while (message := receive(opened))["id"] != f"{middle}":
                pass
            low, high = (low, middle) if message["type"] == "error" else (middle, high)
            opened.send(f'{{"type": "complete", "id": "{middle}"}}')
    return low


def attack(stack: ExitStack, victim: Victim, streams: int, page: int) -> list[Any]:
    """Open streams of `loud`, each with a different alias. Return their sockets."""
    sockets = [
        stack.enter_context(open_socket(victim, victim.world.tokens[LOUD], f"127.9.0.{1 + at}"))
        for at in range(SOCKETS)
    ]
    for at in range(streams):
        opened = sockets[at % SOCKETS]
        subscribe(opened, f"{at}", STREAM.replace("@", f"alias{at}"), {"n": page})
        message = receive(opened)
        assert message["type"] == "next", message
    return sockets


def read_homes(victim: Victim, stop: threading.Event, seconds: list[float]) -> None:
    """Read a home page of another user every 20 ms, and note how long it takes."""
    with victim.client(victim.world.tokens["dave"]) as client:
        while not stop.wait(0.02):
            before = time.perf_counter()
            answer = ask(client, HOME).json()
            if "errors" not in answer:
                seconds.append(time.perf_counter() - before)
            else:  # its points are used up
                stop.wait(0.2)


def replied(victim: Victim, post: str, *, reading: bool) -> tuple[float, Read]:
    """Reply once a second. Return the server's CPU seconds per second and the latencies of another user's home page."""
    stop, latencies = threading.Event(), list[float]()
    reader = threading.Thread(target=read_homes, args=(victim, stop, latencies))
    if reading:
        reader.start()
    try:
        with victim.client(victim.world.tokens["alice"]) as writer, victim.client(victim.world.tokens[LOUD]) as owner:
            before, started = victim.cpu(), time.monotonic()
            for at in range(SECONDS):
                time.sleep(max(0.0, started + at - time.monotonic()))
                answer = ask(writer, REPLY, input={"text": f"reply {time.monotonic_ns()}", "replyToId": post}).json()
                assert answer["data"]["publishPost"]["post"], answer
                if at % 5 == 0 and not reading:
                    assert "errors" not in ask(owner, "{ viewer { user { login } } }").json(), "a request of the viewer"
            time.sleep(max(0.0, started + SECONDS - time.monotonic()))
            cpu = victim.cpu() - before
    finally:
        stop.set()
        if reading:
            reader.join()
    return cpu / SECONDS, Read(len(latencies), 0, 0.0, latencies or [0.0])


def test_x09_events_of_many_streams_cost_little(attacked: tuple[str, World, str], tmp_path: Path) -> None:
    """X9: each reply was read and executed again for each stream of its recipient, free of charge."""
    url, world, post = attacked
    with Victim(tmp_path, url, world, rates=True, settings=GENEROUS) as victim, ExitStack() as stack:
        page = largest(victim)
        idle, _ = replied(victim, post, reading=False)
        _, quiet = replied(victim, post, reading=True)
        sockets = attack(stack, victim, STREAMS, page)
        cpu, _ = replied(victim, post, reading=False)
        _, loaded = replied(victim, post, reading=True)
        received = sum(count(opened) for opened in sockets)
        print(f"pages of {page}: {100 * idle:.1f}% of a core without streams, {100 * cpu:.1f}% with; {received} events")
        print(f"home pages without: {quiet}\nhome pages with: {loaded}")
        assert received >= STREAMS
        assert cpu - idle < 0.1


def count(opened: Any) -> int:
    """Return the number of notifications that have arrived on a socket."""
    found = 0
    try:
        while True:
            found += '"edge"' in opened.recv(0.1)
    except TimeoutError:
        return found
