"""Generated requests and conversations: no 5xx, no traceback, no hang, and no leak.

1,200 cases in every run, and 100,000 requests and 10,000 conversations with `--long`. Hypothesis prints a failing case.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.attacks.fuzz.checks import Finding, converse, send_request
from tests.attacks.fuzz.conversations import Conversations
from tests.attacks.fuzz.requests import Requests
from tests.attacks.victim import MEGABYTE, Victim
from tests.executor.differential.tapes import Tape, tapes

pytestmark = pytest.mark.slow

C = TypeVar("C")

REQUESTS, LONG_REQUESTS = 600, 100_000
CONVERSATIONS, LONG_CONVERSATIONS = 200, 10_000
TAPE = 300
REST = 60  # seconds between two comparisons of memory in a long run
FORBIDDEN = ("Traceback", " ERROR ", "Exception")


class Log:
    """Reads what the server has logged since the last check."""

    def __init__(self, victim: Victim) -> None:
        self._victim = victim
        self._read = victim.log_size()

    def check(self) -> None:
        """Raise a Finding if there is a traceback."""
        if self._victim.log_size() > self._read:
            with self._victim.log_file.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            text = new.decode(errors="replace")
            if any(word in text for word in FORBIDDEN):
                raise Finding(f"logged: {text[-3_000:]}")


@pytest.fixture
def unharmed(victim: Victim, long_profile: bool) -> Iterator[Victim]:
    """Yield a server whose state must be unchanged after the test, with at most 1 MB of log."""
    victim.wait_until_idle()
    before, logged = victim.resources(collect=True), victim.log_size()
    yield victim
    victim.wait_until_idle()
    if long_profile:
        time.sleep(REST)
    after = victim.wait_for_resources(
        lambda found: (
            found.tasks <= before.tasks and found.streams <= before.streams and found.unpooled <= before.unpooled + 2
        )
    )
    print(f"before {before}, after {after}, {victim.log_size() - logged} bytes of log")
    assert victim.answers()
    assert victim.log_size() - logged <= MEGABYTE
    assert after.rss - before.rss <= 50 * MEGABYTE
    assert after.streams == before.streams
    assert after.tasks <= before.tasks
    assert after.unpooled <= before.unpooled + 2


def fuzz(victim: Victim, count: int, make: Callable[[Tape], C], run: Callable[[Victim, C], int]) -> Counter[int]:
    """Run this number of cases, and return the number of each outcome."""
    met: Counter[int] = Counter()
    log = Log(victim)

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),  # shrinking a case that hangs would take minutes
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(tapes(TAPE).map(make))
    def check(case: C) -> None:
        met[run(victim, case)] += 1
        log.check()

    check()
    print(dict(sorted(met.items())))
    return met


def test_generated_requests(unharmed: Victim, long_profile: bool) -> None:
    """Requests of any kind are answered, or refused with a status below 500."""
    make = Requests(unharmed.world).case
    met = fuzz(unharmed, LONG_REQUESTS if long_profile else REQUESTS, make, send_request)
    assert met[200] > met.total() // 4
    assert met[400] > met.total() // 50


def test_generated_conversations(unharmed: Victim, long_profile: bool) -> None:
    """Messages and frames in any order are answered, or the WebSocket is closed with a code that gives the reason."""
    make = Conversations(unharmed.world).case
    met = fuzz(unharmed, LONG_CONVERSATIONS if long_profile else CONVERSATIONS, make, converse)
    assert len(met) > 4
