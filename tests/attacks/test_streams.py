"""Attacks with streams: expensive events and large filters."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.attacks.bounds import Bounds
from tests.attacks.clients import open_socket, receive, subscribe
from tests.attacks.payloads import FILTERS, FOLLOW, SELECTIONS, follow_stream
from tests.attacks.victim import MEGABYTE, Victim, ask

STREAMS = 20
FILTERED = 60


def refused(opened: ClientConnection) -> dict[str, Any]:
    """Return the errors of the refused operations, by operation id."""
    found: dict[str, Any] = {}
    marker = f"marker {time.monotonic_ns()}"
    subscribe(opened, marker, "{ __typename }")
    while (message := receive(opened))["id"] != marker or message["type"] == "next":
        if message["type"] == "error":
            found[message["id"]] = message["payload"]
    return found


@pytest.mark.parametrize("name", SELECTIONS)
def test_x09_costly_selections_on_many_streams(victim: Victim, bounds: Bounds, name: str) -> None:
    """X9: one follow sent 196 MB to 100 streams. Each stream has the largest accepted selection."""
    low, high = 0, 101
    with open_socket(victim) as opened:
        while high - low > 1:
            middle = (low + high) // 2
            subscribe(opened, f"{middle}", follow_stream(victim.world, SELECTIONS[name], middle))
            low, high = (low, middle) if f"{middle}" in refused(opened) else (middle, high)
    assert low > 0
    size, told = 0, 0
    with open_socket(victim, source="127.21.0.1") as opened, victim.client(victim.world.tokens["wei"]) as writer:
        ask(writer, FOLLOW, ids=[victim.world.loud])  # so that the next mutation has a user to unfollow
        for at in range(STREAMS):
            subscribe(opened, f"{at}", follow_stream(victim.world, SELECTIONS[name], low))
        assert not refused(opened)
        with victim.measure() as spent:
            ask(writer, FOLLOW, ids=[victim.world.loud])
            while told < 2 * STREAMS:
                message = opened.recv(20)
                told += '"UserFollowed"' in message or '"UserUnfollowed"' in message
                size += len(message)
    print(f"pages of {low}: {told} events: {size / MEGABYTE:.2f} MB, {spent}")
    assert size <= told * MEGABYTE // 2
    assert spent.cpu <= bounds.refusal + told * 10 * bounds.plain


def test_x09_anonymous_streams_of_an_address(limited: Victim) -> None:
    """X9: one address has at most 20 anonymous streams across all its sockets. Another address is not affected."""
    query = 'subscription { events(filter: {keywords: ["rarely"]}) { cursor } }'
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open_socket(limited, source="127.22.0.1")) for _ in range(5)]
        for at in range(30):
            subscribe(opened[at % 5], f"{at}", query)
        limited.wait_until_idle()
        assert sum(len(refused(each)) for each in opened) == 10
        with open_socket(limited, source="127.23.0.1") as other:
            subscribe(other, "1", query)
            limited.wait_until_idle()
            assert not refused(other)


@pytest.mark.parametrize("token", [None, "dave"], ids=["anonymous", "viewer"])
@pytest.mark.parametrize("kind", FILTERS)
def test_x15_large_filters(limited: Victim, kind: str, token: str | None) -> None:
    """X15: filters with thousands of terms held 1 MB each, and each address could have a thousand of them."""
    query = "subscription ($filter: EventFilter!) { events(filter: $filter) { cursor } }"
    source = f"127.24.{len(kind)}.{2 if token else 1}"

    @contextlib.contextmanager
    def filtering(token: str | None) -> Iterator[None]:
        with open_socket(limited, limited.world.tokens[token] if token else None, source=source) as opened:
            with contextlib.suppress(ConnectionClosed):
                for at in range(FILTERED):
                    subscribe(opened, f"{at}", query, {"filter": FILTERS[kind](limited.world, at)})
            limited.wait_until_idle()
            yield

    with filtering(None):  # all are refused, and a server that has just started still grows
        limited.wait_until_idle()
    before = limited.resources(collect=True)
    with filtering(token):
        after = limited.resources(collect=True)
    print(f"{after.streams - before.streams} streams, {(after.rss - before.rss) / MEGABYTE:.1f} MB")
    assert after.streams - before.streams <= (25 if token else 0)
    assert after.rss - before.rss <= (24 if token else 8) * MEGABYTE
