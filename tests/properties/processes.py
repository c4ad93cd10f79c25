"""The processes of the machine: two APIs, a worker and two archivers, on one store and one archive, behind a gate."""

import asyncio
from collections.abc import Awaitable, Coroutine
from datetime import timedelta
from typing import Any

from graph import Graph, Tuning, keys
from graph.archiver.archiver import Archiver
from graph.errors import AccountDeleted, ArchiveUnavailable, Overloaded, Rejected
from graph.log.events import PostPublished, UserCreated
from graph.log.log import IdempotencyKey
from graph.model import Post
from graph.projections.likes import LikesUnknown
from graph.projections.mode import Mode
from graph.tasks import end
from graph.visibility.views import SYSTEM
from tests.properties.archives import Database, DirectArchive, GatedArchive
from tests.properties.exchange import Exchange
from tests.properties.gate import Gate
from tests.properties.journal import Journal
from tests.properties.model import History, Operation
from tests.properties.stores import DirectStore, GatedStore, NearStore
from tests.support.graph_worlds import PATIENCE

APIS = ("api-0", "api-1")
ARCHIVERS = ("archiver-0", "archiver-1")
PROCESSES = (*APIS, "worker", *ARCHIVERS)
AGELESS = timedelta(seconds=-1)
"""An age that every event has reached."""
MOST_STEPS = 20_000
SCANS = 3
EXPECTED = (Rejected, ArchiveUnavailable, LikesUnknown, Overloaded, AccountDeleted)


class Processes:
    """Starts, kills and finishes processes. `limits` are their push limits, and `tuning` all their other settings."""

    def __init__(self, url: str, database: Database, history: History, tuning: dict[str, Any]) -> None:
        self.url = url
        self.database = database
        self.watch = Exchange(url)
        self.gate = Gate()
        self.journal = Journal()
        self.history = history
        self.limits: dict[str, float] = {}
        self.graphs: dict[str, Graph] = {}
        self.tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._tuning = tuning

    def tuning(self, limit: float) -> Tuning:
        """Return small limits, so that trims, cuts and floors occur often."""
        return Tuning(
            push_limit=limit,
            hot_posts=3,
            hot_slack=2,
            notifications_kept=4,
            log_retention=AGELESS,
            tombstones_live=AGELESS,
            argon2_time_cost=1,
            argon2_memory_kib=8,
            argon2_parallelism=1,
            **self._tuning,
        )

    def boot(self, process: str, limit: float) -> None:
        """Start a process."""
        kind = NearStore if process in APIS else GatedStore
        store = kind(self.url, self.journal, self.gate, process, single_slot=process != "api-1")
        archive = GatedArchive(self.database, self.journal, self.gate, process)
        self.limits[process] = limit
        self.graphs[process] = with_small_batches(Graph(store, archive, self.tuning(limit)))
        self.tasks[process] = []
        self.gate.outages.pop(process, None)
        self.gate.dead.discard(process)

    async def end(self, process: str) -> None:
        """Kill a process: all its operations stop where they are."""
        self.gate.kill(process)
        await end(self.tasks[process])
        self.history.died(process)
        await self.graphs[process].close()

    def close(self) -> None:
        self.watch.close()

    def observer(self, limit: float) -> Graph:
        """Return a graph that does not wait for turns."""
        archive = DirectArchive(self.database, self.journal)
        return with_small_batches(Graph(DirectStore(self.url, self.journal), archive, self.tuning(limit)))

    async def perform(self, operation: Operation, work: Coroutine[Any, Any, Any]) -> None:
        """Perform an operation and note its outcome."""
        try:
            operation.result = await work
        except EXPECTED as error:
            operation.result = error
        operation.returned = self.history.tick()

    async def launch(self, operation: Operation, work: Awaitable[None], calls: int) -> None:
        """Start the work of an operation, and admit up to `calls` calls of its process at once."""
        self.tasks[operation.process].append(asyncio.ensure_future(work))
        await self.gate.run_until_blocked()
        for _ in range(calls):
            own = [turn for turn in self.gate.ready() if turn.process == operation.process]
            if own:
                await self.gate.admit(own[-1])

    async def finish(self) -> None:
        """Run all operations to their end."""
        self.gate.outages.clear()
        most = self.gate.steps + MOST_STEPS
        while any(not task.done() for tasks in self.tasks.values() for task in tasks) or self.gate.waiting:
            await self.gate.run_until_blocked()
            if ready := self.gate.ready():
                await self.gate.admit(ready[0])
            else:
                await asyncio.sleep(0.001)
            assert self.gate.steps < most, f"these operations never end: {self.gate.waiting}"
        for tasks in self.tasks.values():
            await asyncio.gather(*tasks)
            tasks.clear()
        self.history.drained()

    async def settle(self, graph: Graph) -> None:
        """Project and archive everything in the log, and finish the moves of public posts."""
        await asyncio.wait_for(graph.worker(lease=timedelta(0)).drain(), PATIENCE)
        await archive_all(graph.archiver)
        await graph.moves.finish()

    async def scan(self, graph: Graph) -> None:
        """Scan the store until a pass changes nothing."""
        for _ in range(SCANS):
            before = self.watch.changes()
            await graph.scan.run_pass()
            if self.watch.changes() == before:
                return
            await self.settle(graph)

    async def settle_failover(self, graph: Graph, *, projects_lost: bool) -> None:
        """Find out which events are lost.

        The projection of a lost event may be incomplete. With `projects_lost`, complete it, as the process that
        appended the event would.
        """
        rows = {
            row.number for row in await graph.archive.range(0, max(self.journal.encoded), len(self.journal.encoded))
        }
        log = {event.number async for event in graph.log.replay(0, await graph.log.last())}
        lost = self.journal.rolled_back - rows - log
        self.journal.lost = lost
        if projects_lost:
            await graph.projections.project([self.journal.event(number) for number in sorted(lost)], Mode.WORKER)


def with_small_batches(graph: Graph) -> Graph:
    """Return a graph whose archiver works in small steps."""
    graph.archiver._batch = graph.archiver._size = 2
    return graph


async def archive_all(archiver: Archiver) -> None:
    """Archive everything, even if another archiver is active."""
    while await archiver.archive_batch():
        pass


async def sign_up(graph: Graph, login: str, nonce: str, secret: str) -> int | None:
    """Sign up a user whose hash is `secret`, and return the user's id, or None if the login is taken."""
    [claimed] = await graph.users.claim_many([(login, nonce, secret)])
    if not claimed:
        return None
    try:
        await graph.users.refuse_reserved(login, nonce)
    except Rejected:
        return None
    [event] = await graph.commit([UserCreated(login, login, nonce)], IdempotencyKey("-", nonce))
    return event.number


async def publish_many(graph: Graph, author: int, texts: list[str]) -> list[Post]:
    """Publish posts at once."""
    events = await graph.commit([PostPublished(author, text) for text in texts])
    return [post for post in await graph.posts.get_many(SYSTEM, [event.number for event in events]) if post is not None]


async def bind(graph: Graph, binding: str) -> None:
    """Bind the store to its archive."""
    await graph.store.run("SET", keys.BINDING, binding)
