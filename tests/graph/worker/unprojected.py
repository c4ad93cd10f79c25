"""Events that no process has projected yet: appended by a crashed mutation, or read by a crashed worker."""

from datetime import timedelta

from graph import Graph, keys
from graph.log.events import EventBody
from graph.worker.consumer import GROUP, create_groups
from tests.support.graph_worlds import append_events

SOON = timedelta(milliseconds=20)


async def append(graph: Graph, *bodies: EventBody) -> list[int]:
    """Append events without projecting them, like a mutation whose process dies."""
    return [event.number for event in await append_events(graph, bodies)]


async def pending(graph: Graph, stream: str = keys.LOG) -> int:
    """Return the number of entries of a stream that were delivered and not acknowledged."""
    [count, *_] = await graph.store.run("XPENDING", stream, GROUP)
    return int(count)


async def read_and_die(graph: Graph, consumer: str = "dead") -> None:
    """Read all new events of the log without projecting them, like a worker that dies."""
    await create_groups(graph.store)
    await graph.store.run("XREADGROUP", "GROUP", GROUP, consumer, "STREAMS", "{log}", ">")
