"""Measurement of all servers on one store, in turn and in short slices, so that disturbances affect them equally."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.clients import Cost, check, check_writing, cost
from benchmarks.peers.load import Job, Slice
from benchmarks.peers.processes import Generator, Processors, Server, generator, missing, on, server, worker
from benchmarks.peers.queries import MIXED, Query, mixed, publish, reads
from benchmarks.peers.world import KEY, Reading, Size, seed
from benchmarks.stores import private_store, raw

WRITERS = ("fanline", "fanline-executor-off")
SLICE_WARM_UP = 0.2  # seconds, at the beginning of each slice

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The variants and queries by name, the rounds, the seconds of a slice, and the seconds to warm up."""

    variants: Sequence[str]
    queries: Sequence[str]
    rounds: int
    seconds: float
    warm_up: float
    size: Size = field(default_factory=Size)


@dataclass(frozen=True, slots=True)
class Bench:
    """All running parts: the store, its world, the servers, and the load generator."""

    store: Any
    store_process: int
    url: str
    world: Reading
    servers: Sequence[Server]
    generator: Generator
    processors: Processors

    def run(self, server: Server, requests: Sequence[Sequence[str]], warm_up: float, seconds: float) -> Slice:
        """Keep one server busy. Each list of requests belongs to one connection."""
        return self.generator.run(Job(server.port, requests, warm_up, seconds, server.process, self.store_process))


@dataclass(frozen=True, slots=True)
class Measured:
    """The slices by round and the cost per request, by variant and query, and the reasons for skipped variants."""

    slices: Mapping[tuple[str, str], Sequence[Slice]]
    costs: Mapping[tuple[str, str], Cost]
    skipped: Mapping[str, str]


@contextmanager
def bench(variants: Sequence[str], size: Size) -> Iterator[Bench]:
    """Seed a store, and run all processes for the duration of the block."""
    processors = Processors.available()
    with on(processors.others), private_store() as url, raw(url) as store, ExitStack() as stack:
        world = asyncio.run(seed(url, size, KEY))
        servers = [stack.enter_context(server(variant, url, processors)) for variant in variants]
        process = int(store.info("server")["process_id"])
        yield Bench(store, process, url, world, servers, stack.enter_context(generator(processors)), processors)


def measure(plan: Plan, report: Report) -> Measured:
    """Measure all variants. `report` is called with messages about the progress.

    Raises Unequal, before the measurement, if two variants answer differently, and RuntimeError if a request fails.
    """
    skipped = {variant: why for variant in plan.variants if (why := missing(variant))}
    variants = [variant for variant in plan.variants if variant not in skipped]
    with bench(variants, plan.size) as running:
        known = reads(running.world.famous)
        asked = {name: known[name] for name in plan.queries if name != MIXED}
        compared = check(running.servers, asked, running.world.readers)
        report(f"{compared} answers of {len(variants)} variants compared: the same data, to the order of keys.")
        costs = {
            (each.variant, name): cost(each, query, running.world.readers[0], running.store)
            for each in running.servers
            for name, query in asked.items()
        }
        slices = {} if not asked else take_turns(running, plan, asked, report)
        check(running.servers, asked, running.world.readers)
        if MIXED in plan.queries:
            slices |= take_turns_writing(running, plan, known["H"], report)
    return Measured(slices, costs, skipped)


def take_turns(
    running: Bench, plan: Plan, asked: Mapping[str, Query], report: Report
) -> dict[tuple[str, str], list[Slice]]:
    """Send each query to all servers in turn. Each round begins with a different server."""
    slices = defaultdict(list)
    requests = {name: [[query.request(token)] for token in running.world.readers] for name, query in asked.items()}
    for name, each in requests.items():
        for one in running.servers:
            running.run(one, each, plan.warm_up, 0)
        report(f"{name}: all are warm")
    for nth in range(plan.rounds):
        for name, each in requests.items():
            for one in rotated(running.servers, nth):
                slices[one.variant, name].append(running.run(one, each, SLICE_WARM_UP, plan.seconds))
        report(f"round {nth + 1} of {plan.rounds}")
    return slices


def take_turns_writing(running: Bench, plan: Plan, home: Query, report: Report) -> dict[tuple[str, str], list[Slice]]:
    """Let the servers that support writing publish in turn, with a worker process that runs fan-outs."""
    slices = defaultdict(list)
    pairs = zip(running.world.readers, running.world.writers, strict=True)
    requests = [mixed(home, reader, writer, place) for place, (reader, writer) in enumerate(pairs)]
    able = [each for each in running.servers if each.variant in WRITERS]
    for each in able:
        check_writing(each, publish(0), running.world.writers[0])
    with worker(running.url, running.processors) if able else contextlib.nullcontext():
        for nth in range(plan.rounds):
            for one in rotated(able, nth):
                warm_up = SLICE_WARM_UP if nth else plan.warm_up
                slices[one.variant, MIXED].append(running.run(one, requests, warm_up, plan.seconds))
    report(f"{MIXED}: {plan.rounds} rounds")
    return slices


def rotated(servers: Sequence[Server], by: int) -> list[Server]:
    """Return a list rotated to begin at another index."""
    start = by % len(servers) if servers else 0
    return [*servers[start:], *servers[:start]]
