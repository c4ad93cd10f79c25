"""X10: silent, half-open and slow connections from one address. Clients at other addresses are not affected."""

import resource
import time
from pathlib import Path

import pytest

from tests.attacks.crowds import OPENINGS, read, stalled, still_open
from tests.attacks.victim import MEGABYTE, Victim
from tests.attacks.world import World

pytestmark = pytest.mark.slow

ATTACKER = "127.0.0.2"
OTHERS = tuple(f"127.0.0.{at}" for at in range(3, 23))
STALLED, LONG_STALLED = 300, 3_000
ROUNDS, LONG_ROUNDS = 6, 50
DESCRIPTORS = 256
TO_CLOSE = 20.0  # seconds within which a connection without complete headers must be closed


def test_x10_stalled_connections_of_one_address(limited: Victim, long_profile: bool) -> None:
    """The readers' requests succeed and, in the long profile, cost the server as much as before."""
    count, rounds = (LONG_STALLED, LONG_ROUNDS) if long_profile else (STALLED, ROUNDS)
    read(limited, OTHERS, 2)
    alone, rss = read(limited, OTHERS, rounds), limited.rss()
    with stalled(limited, count, ATTACKER) as connections:
        grown = limited.rss() - rss
        beside = read(limited, OTHERS, rounds)
        left = still_open(connections)
    print(f"alone: {alone}\nbeside {left} of {count} stalled: {beside}; {grown / MEGABYTE:+.1f} MB")
    assert (alone.failed, beside.failed) == (0, 0)
    assert not long_profile or beside.cpu <= 1.5 * alone.cpu + 0.001
    assert left <= 100
    assert grown <= 8 * MEGABYTE


def test_x10_incomplete_headers(victim: Victim, long_profile: bool) -> None:
    """Connections that never send complete headers are closed."""
    if not long_profile:
        pytest.skip("waits for timeouts: needs --long")
    kinds = [
        kind for kind in OPENINGS if kind not in ("a body that never ends", "chunks that never end", "a handshake")
    ]
    with stalled(victim, 40, ATTACKER, kinds) as connections:
        assert len(connections) == 40
        deadline = time.monotonic() + TO_CLOSE
        while (left := still_open(connections)) and time.monotonic() < deadline:
            time.sleep(0.2)
    assert left == 0


def test_x10_headers_byte_by_byte(victim: Victim, long_profile: bool) -> None:
    """Sending single bytes does not keep a connection open longer."""
    if not long_profile:
        pytest.skip("waits for timeouts: needs --long")
    with victim.connect(ATTACKER) as connection:
        connection.setblocking(False)
        deadline = time.monotonic() + TO_CLOSE
        connection.send(b"GET /graphql HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        while still_open([connection]) and time.monotonic() < deadline:
            time.sleep(0.5)
            try:
                connection.send(b"a")
            except OSError:
                return
        assert time.monotonic() < deadline


@pytest.mark.parametrize("rates", [True, False], ids=["limited", "unlimited"])
def test_x10_descriptors_run_out(folder: Path, attacked_store: str, attacked_world: World, rates: bool) -> None:
    """With few descriptors, stalled connections from many addresses leave enough for the store, files and a request.

    The server closes the connections that it refuses, and recovers when the others are closed.
    """
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 2 * DESCRIPTORS
    with Victim(folder, attacked_store, attacked_world, rates=rates, descriptors=DESCRIPTORS, quick=True) as victim:
        with victim.client() as early:
            assert early.get("/health/ready").status_code == 200
            with (
                stalled(victim, DESCRIPTORS, ATTACKER, ("silent",)) as one,
                stalled(victim, DESCRIPTORS, "127.0.1.2", ("half the headers",)) as two,
            ):
                victim.wait_until_idle()
                assert victim.resources().descriptors < DESCRIPTORS
                assert early.get("/health/ready").status_code == 200
                print(f"{still_open([*one, *two])} of {2 * DESCRIPTORS} are open")
            victim.wait_until_idle()
        assert victim.answers()
        assert "Too many open files" not in victim.log()
        assert victim.log_size() < 16_000
