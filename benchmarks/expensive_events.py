"""The most expensive events of subscriptions: what the largest accepted selection costs for one event."""

import asyncio
import time
from collections.abc import Callable, Sequence

from websockets.sync.client import ClientConnection

from benchmarks.calibration import Stage
from benchmarks.calibration_world import FULL
from benchmarks.report import Cell, Table
from graph import Graph, Tuning
from graph.archive.archive import Archive
from graph.log.events import PostPublished
from resolvers import ids
from tests.attacks.clients import open_socket, receive, subscribe

COLUMNS = ("stream", "largest page", "CPU ms", "kB")
NOTE = "Per event, without the cost of the post that causes it. Goals: 100 ms of CPU, 5 MB."
EVENTS = 20
PATIENCE = 30.0
SETTLED = 0.5  # seconds without a message after which all events have arrived
MOST = 101
POST = """id text author { login name } entities { ... on MentionEntity { start user { login name } } }
  conversation: replies(first: $n) { nodes { id text author { login } } }"""
NOTE_FIELDS = "id isRead actors(limit: 10) { login name }"
STREAMS = {
    "homeTimeline": f"""homeTimeline {{ ... on PostAdded {{ cursor timelineEdge {{
      node {{ ... on Post {{ {POST} }} }} }} }} }}""",
    "notifications": f"""notifications {{ ... on NotificationAdded {{ cursor edge {{ node {{ {NOTE_FIELDS} }} }}
      feed {{ unreadCount entries(first: $n) {{ nodes {{ {NOTE_FIELDS} }} }} }} }} }}""",
    "events": f'events(filter: {{keywords: ["#tag1"]}}) {{ ... on PostAdded {{ cursor post {{ {POST} }} }} }}',
}


def events_table(name: str, opened: Stage) -> Table:
    """Return the table of the events of all subscriptions on one database."""
    rows = asyncio.run(_rows(opened))
    rows.sort(key=lambda cells: -float(cells[2]))
    return Table(f"most-expensive-events-{name.lower()}", f"The largest events, {name}", COLUMNS, rows, NOTE)


async def _rows(opened: Stage) -> list[list[Cell]]:
    store, archive = opened.urls
    graph = await Graph.open(store, Archive(archive), Tuning(argon2_time_cost=1, argon2_memory_kib=8))
    try:
        return [await asyncio.to_thread(_row, name, opened, _writer(graph, opened)) for name in STREAMS]
    finally:
        await graph.close()


def _writer(graph: Graph, opened: Stage) -> Callable[[], object]:
    """Return a thread-safe function that publishes a post with all kinds of entities and mentions the viewer."""
    loop = asyncio.get_running_loop()
    author, *mentioned = _numbers(opened.world.crowd[0], opened.world.viewer, opened.world.crowd[1])
    body = PostPublished(author, f"{FULL} @viewer @user1", mentions=tuple(mentioned))
    return lambda: asyncio.run_coroutine_threadsafe(graph.commit([body]), loop).result(PATIENCE)


def _numbers(*texts: str) -> Sequence[int]:
    return ids.numbers(ids.Kind.USER, texts) or []


def _row(name: str, opened: Stage, write: Callable[[], object]) -> list[Cell]:
    quiet = _cost(opened, write, [])
    with open_socket(opened.victim, opened.world.token) as listener:
        page = _largest(listener, name)
        _start(listener, name, page)
        sizes: list[int] = []
        cpu = _cost(opened, write, sizes, listener)
    return [name, page, 1000 * (cpu - quiet) / EVENTS, max(sizes) / 1000]


def _cost(
    opened: Stage, write: Callable[[], object], sizes: list[int], listener: ClientConnection | None = None
) -> float:
    """Return the CPU seconds of all events. Add the bytes of each event that the listener receives to `sizes`."""
    before = opened.cpu()
    for _ in range(EVENTS):
        write()
        if listener is not None:
            sizes.append(_event(listener))
    time.sleep(SETTLED)
    return opened.cpu() - before


def _event(listener: ClientConnection) -> int:
    """Return the bytes of the next event."""
    while True:
        text = listener.recv(PATIENCE)
        if '"cursor"' in str(text):
            return len(text)


def _start(listener: ClientConnection, name: str, page: int) -> bool:
    """Start a stream. Return True if it was accepted."""
    subscribe(listener, f"{name} {page}", f"subscription ($n: Int!) {{ {STREAMS[name]} }}", {"n": page})
    while (message := receive(listener))["id"] != f"{name} {page}":
        pass
    return bool(message["type"] == "next")


def _largest(listener: ClientConnection, name: str) -> int:
    """Return the largest page that the selection of a stream may have, found by bisection."""
    low, high = 0, MOST
    while high - low > 1:
        middle = (low + high) // 2
        accepted = _start(listener, name, middle)
        low, high = (middle, high) if accepted else (low, middle)
        listener.send(f'{{"type": "complete", "id": "{name} {middle}"}}')
    return low
