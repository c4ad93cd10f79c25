"""Memory of the server: idle sockets, and the memory that closed sockets leave behind."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial

from benchmarks.latencies import Latencies
from benchmarks.live_clients import (
    HANDSHAKE,
    SUBSCRIBE,
    Subscriber,
    connect,
    for_each,
    init,
    leave_all,
    open_all,
    subscribe_all,
)
from benchmarks.live_server import Resources
from benchmarks.live_stage import Stage, until
from benchmarks.report import Cell, Table

MIB, KIB = 1024 * 1024, 1024
WARM = 200
MEMORY_COLUMNS = (
    "state",
    "sockets",
    "streams",
    "tasks",
    "fds",
    "objects",
    "RSS MB",
    "additional KB per socket",
    "CPU %",
)
MEMORY_NOTE = (
    "One server process. Garbage is collected before each measurement. 'Additional KB per socket' is relative to the "
    "row above. Each viewer follows 21 authors. CPU is the load of pings, session checks and checkpoints alone. Goals: "
    "20 KB per subscription, without its socket; 600 MB for 10,000 sockets in all."
)
CHURN_COLUMNS = (
    "after",
    "connections",
    "seconds",
    "streams",
    "tasks",
    "fds",
    "objects",
    "RSS MB",
    "additional KB per connection",
)
CHURN_NOTE = (
    "A third of the sockets subscribe and close cleanly; a third subscribe and are reset; a third are reset during the "
    "handshake, before the first message, before its reply, or before the reply to the subscription. {at_once} at "
    "once. Garbage is collected before each measurement; 'additional KB per connection' is relative to the row above. "
    "The first row is after a few sockets; the first round still fills pools. Goal: later rounds leave nothing behind."
)


async def warm_up(stage: Stage) -> None:
    """Open and close a few sockets, so that one-time allocations such as the log reader are not measured."""
    few = await open_all(stage.server.port, stage.tokens[:WARM])
    await subscribe_all(few)
    await leave_all(few)


async def idle(stage: Stage, seconds: float) -> Table:
    """Measure idle sockets, then subscribed sockets without events, then subscribed sockets after one post."""
    noted, viewers = Latencies(), len(stage.tokens)
    await warm_up(stage)
    seen: list[tuple[str, int, Resources, float]] = []

    async def record(state: str, sockets: int, streams: int, cpu: float = 0.0) -> None:
        seen.append((state, sockets, await stage.quiet(streams=streams), cpu))

    await record(f"after {min(WARM, viewers)} sockets were opened and closed", 0, 0)
    subscribers = await open_all(stage.server.port, stage.tokens, noted.durations)
    await record("acknowledged", viewers, 0)
    await subscribe_all(subscribers)
    await record("each with a subscription", viewers, viewers)
    before = await stage.server.resources()
    await asyncio.sleep(seconds)
    cpu = (await stage.server.resources()).cpu - before.cpu
    await record(f"the same, {seconds:,.0f} s later", viewers, viewers, 100 * cpu / seconds)
    await stage.publish([stage.audiences[0].author], 1, 1)
    await until(lambda: noted.count >= viewers)
    await record("after one event for all", viewers, viewers)
    await leave_all(subscribers)
    await record("closed", 0, 0)
    return Table("memory", "Memory of idle sockets", MEMORY_COLUMNS, _memory_rows(seen, viewers), MEMORY_NOTE)


def _memory_rows(seen: Sequence[tuple[str, int, Resources, float]], viewers: int) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    last = seen[0][2]
    for state, sockets, now, cpu in seen:
        more = (now.rss - last.rss) / KIB / viewers
        rows.append([state, sockets, now.streams, now.tasks, now.fds, now.objects, now.rss / MIB, more, cpu])
        last = now
    return rows


async def churn(stage: Stage, rounds: int, connects: int, at_once: int) -> Table:
    """Open and close sockets in different ways, round after round."""
    rows: list[list[Cell]] = []
    await warm_up(stage)
    last = await stage.quiet()
    for number in range(rounds + 1):
        start = time.monotonic()
        if number:
            await for_each((partial(come_and_go, stage, index) for index in range(connects)), at_once)
        lasted = time.monotonic() - start if number else 0.0
        now = await stage.quiet(tasks=last.tasks if number else None)
        more = (now.rss - last.rss) / KIB / connects if number else 0.0
        counts = now.streams, now.tasks, now.fds, now.objects
        state = f"round {number}" if number else "the start"
        rows.append([state, connects * number, lasted, *counts, now.rss / MIB, more])
        last = now
    return Table("churn", "Resources after closed connections", CHURN_COLUMNS, rows, CHURN_NOTE.format(at_once=at_once))


async def come_and_go(stage: Stage, index: int) -> None:
    """Open a socket, then close it, reset it, or reset it in the middle of an exchange."""
    token = stage.tokens[index % len(stage.tokens)]
    subscriber = await connect(stage.server.port, index)
    way, stop = index % 3, index // 3 % 4
    try:
        if way == 2:
            await _break_off(subscriber, token, stop)
            await asyncio.sleep(index % 7 / 1000)  # so that the sockets end at different steps of the server
        else:
            await subscriber.begin(token)
            await subscriber.subscribe()
            if way == 0:
                await subscriber.leave()
    finally:
        subscriber.reset()


async def _break_off(subscriber: Subscriber, token: str, stop: int) -> None:
    if stop == 0:
        subscriber.transport.write(HANDSHAKE[:100])
    elif stop == 1:
        await subscriber.ask(HANDSHAKE)
    elif stop == 2:
        await subscriber.ask(HANDSHAKE)
        subscriber.transport.write(init(token))
    else:
        await subscriber.begin(token)
        subscriber.transport.write(SUBSCRIBE)
