"""Search for the most expensive request: `python -m tests.attacks.search [--seconds N]`.

Hypothesis targets the server's CPU time for accepted requests, with generated and hand-written queries. The pages of
each query are as large as the server allows. Prints the most expensive requests with CPU time, response bytes and
points, and the most expensive refusals.
"""

import argparse
import asyncio
import heapq
import http.client
import itertools
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import redis
from hypothesis import HealthCheck, Phase, given, seed, settings, target

from server.embedded import Durability, EmbeddedStore
from server.operations.cost import OperationCost
from tests.attacks.candidates import Candidate, candidates
from tests.attacks.heavy import HeavyWriter
from tests.attacks.points import demand_of
from tests.attacks.victim import MEGABYTE, Victim
from tests.attacks.world import LOUD, World, seed_world
from tests.executor.differential.tapes import Tape, tapes

TAPE = 160
EXAMPLES = 200  # per run of Hypothesis; runs are repeated until the time is over
SIZES = tuple(range(1, 101))
REPEATS = 3
SHOWN = 10
KEPT = 80  # of each kind, until the final measurement
SHOWN_TEXT = 400
IDS = re.compile(r'\["[^\]]*\]')


@dataclass(frozen=True)
class Cost:
    """The cost of one request: the server's CPU seconds, the bytes of the response, and the points counted."""

    cpu: float
    bytes: int
    demand: OperationCost
    accepted: bool
    who: str
    name: str
    text: str

    def __lt__(self, other: "Cost") -> bool:
        return self.cpu < other.cpu

    def __str__(self) -> str:
        short = IDS.sub(lambda found: f"[{found[0].count(',') + 1} ids]", self.text)
        text = short if len(short) <= SHOWN_TEXT else f"{short[:SHOWN_TEXT]}… ({len(self.text)} characters)"
        return (
            f"{1000 * self.cpu:8.1f} ms  {self.bytes / MEGABYTE:7.2f} MB  (at most {self.demand.size / MEGABYTE:.2f})  "
            f"{self.demand.points:8,} points  {self.who:9}  "
            f"{self.name}\n          {text}"
        )


class Meter:
    """Sends queries on one connection and measures their cost."""

    def __init__(self, victim: Victim, who: str, token: str | None) -> None:
        self._victim = victim
        self.who = who
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._connection = http.client.HTTPConnection("127.0.0.1", victim.port, timeout=60)
        self._salt = itertools.count()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def measure(self, name: str, text: str, repeats: int = 1) -> Cost:
        """Send a query several times, each time in a form that the server has not seen. Return the lowest cost."""
        return min(self._once(name, text) for _ in range(repeats))

    def _once(self, name: str, text: str) -> Cost:
        salted = f"{text} # {next(self._salt)}"
        body = json.dumps({"query": salted})
        before = self._victim.cpu()
        try:
            self._connection.request("POST", "/graphql", body, self._headers)
            response = self._connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next request opens a new connection
            return Cost(self._victim.cpu() - before, 0, demand_of(text), False, self.who, f"{name}: {error!r}", text)
        cpu = self._victim.cpu() - before
        accepted = response.status == 200 and answer.startswith(b'{"data":{')
        return Cost(cpu, len(answer), demand_of(text), accepted, self.who, name, text)

    def largest(self, name: str, write: Callable[[float], str]) -> tuple[Cost, Cost | None]:
        """Return the cost of a query at the largest accepted scale, from 0 to 1, or else of its smallest form.

        Also return the most expensive refusal of the search, if any.
        """
        best, refused = self.measure(name, write(1.0), REPEATS), None
        low, high = 0.0, 1.0
        if best.accepted:
            return best, None
        refused = best
        best = self.measure(name, write(0.0))
        while best.accepted and high - low > 0.02:
            middle = (low + high) / 2
            found = self.measure(name, write(middle))
            if found.accepted:
                low, best = middle, max(best, found)
            else:
                high, refused = middle, max(refused, found)
        if best.accepted:  # again, because a garbage collection may have disturbed the first measurement
            best = min(best, self.measure(name, best.text, REPEATS - 1))
        return best, refused


class MostExpensive:
    """The most expensive requests, one of each shape."""

    def __init__(self) -> None:
        self.accepted: dict[tuple[str, str], Cost] = {}
        self.refused: dict[tuple[str, str], Cost] = {}

    def note(self, *costs: Cost | None) -> None:
        """Add a result."""
        for cost in costs:
            if cost is not None:
                kept = self.accepted if cost.accepted else self.refused
                key = cost.who, cost.text
                kept[key] = max(cost, kept.get(key, cost))
                if len(kept) > KEPT:
                    del kept[min(kept, key=kept.__getitem__)]


def sized(candidate: Candidate, scale: float) -> str:
    """Return a candidate with pages of up to 100 items, depending on a scale from 0 to 1."""
    return candidate(max(1, round(100 * scale)))


def by_hand(meter: Meter, written: Mapping[str, Candidate], tops: MostExpensive) -> None:
    """Measure the hand-written candidates."""
    for name, candidate in written.items():
        tops.note(*meter.largest(name, partial(sized, candidate)))


def generated(meter: Meter, world: World, tops: MostExpensive, until: float) -> int:
    """Let Hypothesis generate expensive queries until the time is up. Return the number of measured queries."""
    count = 0
    for run in itertools.count():
        if time.monotonic() >= until:
            return count

        @seed(run)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.target),
            suppress_health_check=list(HealthCheck),
        )
        @given(tapes(TAPE))
        def run_example(tape: Tape) -> None:
            nonlocal count
            if time.monotonic() >= until:
                return
            count += 1
            best, refused = meter.largest("generated", lambda scale: HeavyWriter(world, tape.again(), scale).write())
            if best.accepted:
                target(best.cpu)
            tops.note(best, refused)

        run_example()
    raise AssertionError("unreachable")


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Search for the request that costs the server most.")
    parser.add_argument("--seconds", type=float, default=120, help="how long to search (%(default)s)")
    parser.add_argument("--posts", type=int, default=3000, help="posts of the loudest user (%(default)s)")
    parser.add_argument("--followers", type=int, default=2000, help="followers of that user (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found to this file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="fanline-search-") as name,
        EmbeddedStore(Path(name) / "store", Durability.RELAXED) as store,
    ):
        with redis.Redis.from_url(store.url) as client:
            client.config_set("appendonly", "no")
        world = asyncio.run(seed_world(store.url, posts=options.posts, followers=options.followers, posts_each=100))
        with Victim(Path(name) / "server", store.url, world) as victim:
            search(victim, world, options.seconds, options.json)


def search(victim: Victim, world: World, seconds: float, file: Path | None) -> None:
    """Run the search and print the results."""
    tops = MostExpensive()
    meters = (Meter(victim, "anonymous", None), Meter(victim, "token", world.tokens[LOUD]))
    plain = meters[0].measure("plain", '{ user(by: {login: "alice"}) { login name } }', 50)
    print(f"A plain query takes {1000 * plain.cpu:.2f} ms of CPU, parsed each time.")
    by_hand(meters[0], candidates(world), tops)
    by_hand(meters[1], candidates(world, token=True), tops)
    start, count = time.monotonic(), 0
    for part, meter in enumerate(meters, 1):
        count += generated(meter, world, tops, start + seconds * part / len(meters))
    print(f"{count:,} shapes were generated.\n")
    found = {}
    for kind, met in (("accepted", tops.accepted), ("refused", tops.refused)):
        again = [meters[cost.who == "token"].measure(cost.name, cost.text, REPEATS) for cost in met.values()]
        found[kind] = heapq.nlargest(SHOWN, again)
        print(f"Most expensive, {kind}:", *found[kind], sep="\n")
    largest = sorted(tops.accepted.values(), key=lambda cost: -cost.bytes)[:SHOWN]
    print("Largest answers:", *largest, sep="\n")
    for meter in meters:
        meter.close()
    if file:
        file.write_text(json.dumps({kind: [vars(cost) for cost in costs] for kind, costs in found.items()}, indent=1))


if __name__ == "__main__":
    main()
