"""Limits on failed log-ins, compared with a model for random histories."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.errors import Rejected
from graph.passwords.attempts import (
    DELAY_STEP,
    FREE_ANYWHERE,
    FREE_ATTEMPTS,
    MAX_DELAY,
    REMEMBERED_FAILURES,
    WINDOW_SECONDS,
    Attempts,
)
from graph.store.store import Store
from tests.graph.passwords.test_attempts import age
from tests.support.raw import open_raw


@dataclass
class Model:
    """The expected limits, computed with a clock and lists."""

    now: float = 0
    failures: defaultdict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    everywhere: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    known: set[tuple[str, str]] = field(default_factory=set)

    def begin(self, login: str, network: str) -> float | None:
        """Return the delay of an attempt, or None for a refusal."""
        own = [at for at in self.failures[login, network] if at > self.now - WINDOW_SECONDS]
        all_ = [at for at in self.everywhere[login] if at > self.now - WINDOW_SECONDS][-REMEMBERED_FAILURES:]
        if len(own) >= FREE_ATTEMPTS:
            return None
        if (login, network) in self.known and not own:
            return 0
        return min(MAX_DELAY, max(0, len(all_) - FREE_ANYWHERE) * DELAY_STEP)

    def end(self, login: str, network: str, succeeded: bool) -> None:
        """Record the result of an attempt."""
        if succeeded:
            self.failures[login, network].clear()
            self.known.add((login, network))
        else:
            self.failures[login, network].append(self.now)
            self.everywhere[login].append(self.now)


LOGINS = st.sampled_from(["alice", "bob"])
ATTACK = st.tuples(st.just("fail"), LOGINS, st.sampled_from(["a", "b", "c", "victim"]), st.integers(1, 14))
VISIT = st.tuples(st.just("succeed"), LOGINS, st.sampled_from(["a", "victim", "phone"]), st.just(1))
REST = st.tuples(st.just("rest"), st.just(""), st.just(""), st.sampled_from([1, 2, 3]))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(ATTACK, ATTACK, VISIT, REST), max_size=14))
def test_refusals_and_delays_match_the_model(store_url: str, history: list[tuple[str, str, str, int]]) -> None:
    """Networks, logins, results and times are random."""
    asyncio.run(play(store_url, history))


async def play(store_url: str, history: list[tuple[str, str, str, int]]) -> None:
    """Perform a history on the store and the model, and compare all results."""
    store, model = Store(store_url, single_slot=True), Model()
    attempts = Attempts(store)
    tried: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    async with open_raw(store_url) as raw:
        await raw.flushall()
        for kind, login, network, times in history:
            if kind == "rest":
                model.now += 310 * times
                await age(raw, 310 * times)
                continue
            for _ in range(times):
                expected = model.begin(login, network)
                try:
                    attempt = await attempts.begin(login, network)
                except Rejected:
                    assert expected is None
                    continue
                assert attempt.delay == expected
                if kind == "succeed":
                    await attempts.succeed(attempt)
                    tried[login, network].clear()
                else:
                    tried[login, network].append(model.now)
                recent = [at for at in tried[login, network] if at > model.now - WINDOW_SECONDS]
                assert len(recent) <= FREE_ATTEMPTS
                model.end(login, network, kind == "succeed")
        clean = await attempts.begin("alice", "a clean network")
        assert clean.delay <= MAX_DELAY
    await store.close()
