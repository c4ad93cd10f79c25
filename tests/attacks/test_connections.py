"""Attacks on connections: floods, held connections and protocol abuse. The server limits the resources of each."""

import pytest

from benchmarks.live_clients import HANDSHAKE, PING, frame
from tests.attacks.bounds import Bounds, assert_within
from tests.attacks.clients import exchange, push, request, streamed
from tests.attacks.crowds import send_invalid_requests
from tests.attacks.payloads import EVENTS, HEADS
from tests.attacks.victim import MEGABYTE, PLAIN, Victim

GET = request(method="GET", path="/health/live")
CONNECTIONS = 4
JUNK, LONG_JUNK = 3_000, 60_000
REMEMBERED = 80_000  # objects of cached refusals
GARBAGE = 64 * MEGABYTE  # growth of the server before it collects garbage


@pytest.mark.parametrize("behind", ["a stream", "a slow body"])
def test_x04_pipelined_requests(victim: Victim, behind: str) -> None:
    """X4: requests pipelined behind an event stream, then closed, leaked 25 MB per connection permanently."""
    first = streamed(EVENTS) if behind == "a stream" else request(b"{" * 1000)[:-900]
    pipelined = GET * (10 * MEGABYTE // len(GET))
    before = victim.resources(collect=True)
    for _ in range(CONNECTIONS):
        with victim.connect() as connection:
            sent = push(connection, [first, pipelined])
    victim.wait_until_idle()
    after = victim.wait_for_resources(lambda found: found.tasks <= before.tasks and found.streams <= before.streams)
    print(f"{sent / MEGABYTE:.1f} MB were taken; {(after.rss - before.rss) / MEGABYTE:.1f} MB more; {before} {after}")
    assert after.streams == before.streams
    assert after.tasks <= before.tasks
    assert after.unpooled <= before.unpooled + 1
    assert after.objects <= before.objects + 2_000
    assert after.rss - before.rss <= 8 * MEGABYTE


def test_x04_pipelined_requests_are_answered_in_order(victim: Victim) -> None:
    """A few pipelined requests still work."""
    query = request({"query": PLAIN})
    with victim.connect() as connection:
        push(connection, [query * 3])
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 3:
            received += connection.recv(65_536)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", [60_000, 30 * MEGABYTE], ids=["60 KB", "30 MB"])
def test_x05_headers(victim: Victim, bounds: Bounds, name: str, size: int) -> None:
    """X5: a 30 MB `Accept` header took 24 seconds of CPU; 100 MB of headers took 165 MB of memory."""
    content = HEADS[name](size)
    spent = assert_within(victim, bounds.refusal, lambda attempt: exchange(victim, content))
    assert spent.grown <= 4 * MEGABYTE


@pytest.mark.parametrize("payload", [b"", b"x" * 125])
def test_x11_pings_without_reading(victim: Victim, bounds: Bounds, payload: bytes) -> None:
    """X11: 200 MB of pings whose pongs were never read took 188 MB and 6.6 seconds of CPU."""
    pings = frame(PING, payload)
    flood = pings * (20 * MEGABYTE // len(pings))

    def attack(attempt: int) -> None:
        with victim.connect() as connection:
            connection.sendall(HANDSHAKE)
            print(f"{push(connection, [flood]) / MEGABYTE:.1f} MB were taken")

    spent = assert_within(victim, 2 * bounds.refusal, attack)
    assert spent.grown <= 4 * MEGABYTE


def test_x13_a_refusal_is_the_last_thing_that_is_written(victim: Victim) -> None:
    """A request that waits for `100 Continue` and then breaks the framing caused a traceback in the log."""
    head = b"POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n"
    with victim.measure() as spent:
        for _ in range(10):
            answer = exchange(victim, head + b"transfer-encoding: chunked\r\n\r\n-1\r\n{}")
            assert answer is None or answer.status in (100, 400)
    assert spent.logged == 0


def test_x13_invalid_requests(victim: Victim, long_profile: bool) -> None:
    """X13: each refused request left 11 KB of uncollected memory, and 80 to 500 bytes of log."""
    count = LONG_JUNK if long_profile else JUNK
    before = victim.resources(collect=True)
    with victim.measure() as spent:
        send_invalid_requests(victim, count)
    after = victim.resources(collect=True)
    print(f"each: {1000 * spent.cpu / count:.2f} ms, {spent.grown / count:.0f} B more; {spent.logged} B of log")
    assert spent.logged <= 32_000
    assert spent.grown <= min(GARBAGE, 5_000 * count) + 16 * MEGABYTE
    assert after.objects <= before.objects + REMEMBERED
