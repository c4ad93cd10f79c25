"""Two API processes and a worker, interleaved call by call, against a reference model.

Every call to the store and every transaction of the archive may run before or after any call of another process, and a
process may die at any of them. Limits are small, so that trims, promotions, fan-out tasks and moves occur often.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import hypothesis.strategies as st
import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection

from graph import Graph, Tuning, keys
from graph.archive.database import Database
from graph.archive.statements import FLOORS, POSTS
from graph.errors import Rejected
from graph.log.events import Event, PostPublished
from graph.model import MAX_NUMBER
from graph.projections.mode import Mode
from graph.tasks import end
from tests.properties.gate import DirectStore, Gate, GatedArchive, GatedStore, SharedArchive
from tests.properties.model import History, Operation, World
from tests.properties.rest import Rest, whole_timeline

pytestmark = pytest.mark.slow

LIMITS = (math.inf, 0.0, 1.0, 2.0)
MAX_DEATHS = 4
PARTS = 2
ALL_CALLS = 99
APIS = ("api-0", "api-1")
MODES = (Mode.REQUEST, Mode.WORKER)

users = st.integers(0, 5)
authors = st.sampled_from((0, 0, 0, 1, 2))
pairs = st.tuples(users, st.sampled_from((0, 1)))
apis = st.sampled_from(APIS)
calls = st.sampled_from((ALL_CALLS, 0, 1, 2, 3, 4))


class Interleavings(RuleBasedStateMachine):
    """Starts operations on any process, and runs their calls one by one in any order."""

    def __init__(self, url: str, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.url = url
        self.database = database
        self.loop = loop
        self.raw = redis.Redis.from_url(url, decode_responses=True)
        self.raw.flushall()
        self.gate = Gate()
        self.history = History()
        self.graphs: dict[str, Graph] = {}
        self.tasks: dict[str, list[asyncio.Task[None]]] = {}
        self.deaths = 0
        self.texts = 0
        self.at_rest = 0
        self.run(empty(database))

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end on the machine's own loop."""
        return self.loop.run_until_complete(coroutine)

    @initialize(
        limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
        sync=st.sampled_from((1, 100)),
        population=st.sampled_from((2, 3, 4)),
        task=st.sampled_from((1, 2, 100)),
        before=st.sampled_from((0, 3, 4, 6)),
        home_size=st.sampled_from((5, 5, 10)),
    )
    def open_processes(
        self, limits: tuple[float, float], sync: int, population: int, task: int, before: int, home_size: int
    ) -> None:
        """Start the processes with limits of their own, and sign up two to four users; the first has some posts."""
        self.before = before
        self.home_size = home_size
        self.population = population
        self.sync = sync
        self.task = task
        self.limits = dict(zip((*APIS, "worker"), (*limits, limits[0]), strict=True))
        self.run(self._sign_up())
        for process in self.limits:
            self._boot(process)

    def tuning(self, limit: float) -> Tuning:
        """Return small limits, so that trims and floors occur often."""
        return Tuning(
            home_size=self.home_size,
            sync_followers=self.sync,
            push_limit=limit,
            fan_out_task=self.task,
            hot_posts=3,
            archive_batch=2,
            tombstones_live=timedelta(0),
            argon2_time_cost=1,
            argon2_memory_kib=8,
            argon2_parallelism=1,
        )

    async def _sign_up(self) -> None:
        graph = self._observer(math.inf)
        self.users = [(await graph.users.sign_up(f"user{i}", "long enough")).id for i in range(self.population)]
        for user in self.users:
            others = [other for other in self.users if other != user]
            await graph.follows.follow(user, others)
            for other in others:
                operation = self.history.start("before", "follow", user, other)
                operation.returned = self.history.tick()
        for number in range(self.before):
            operation = self.history.start("before", "publish", self.users[0], f"before {number}")
            operation.result = await graph.posts.publish(self.users[0], f"before {number}")
            operation.returned = self.history.tick()
        await graph.worker().drain()
        await graph.close()

    def user_at(self, index: int) -> int:
        """Return one of the users for any index."""
        return self.users[index % self.population]

    def _boot(self, process: str) -> None:
        store = GatedStore(self.url, self.gate, process, single_slot=process != "api-1")
        archive = GatedArchive(self.database, self.gate, process)
        self.graphs[process] = Graph(store, self.tuning(self.limits[process]), archive)
        self.tasks[process] = []

    def _launch(self, operation: Operation, work: Coroutine[Any, Any, Any], calls: int) -> None:
        """Start an operation and let so many of its process's calls through at once."""

        async def perform() -> None:
            try:
                operation.result = await work
            except Rejected as rejected:
                operation.result = rejected
            operation.returned = self.history.tick()
            if operation.kind == "read":
                self.history.check_read(operation, complete_fan_out=self.sync == 100)

        async def begin() -> None:
            self.tasks[operation.process].append(asyncio.create_task(perform()))
            await self.gate.run_until_blocked()
            for _ in range(calls):
                own = [turn for turn in self.gate.waiting if turn.process == operation.process]
                if own:
                    await self.gate.admit(own[-1])

        self.run(begin())

    @rule(process=apis, author=authors, key=st.sampled_from((None, None, "k1", "k2")), calls=calls)
    def publish(self, process: str, author: int, key: str | None, calls: int) -> None:
        """An author publishes, perhaps with a repeated idempotency key and the same text."""
        self.texts += 1
        text = f"text {self.texts}" if key is None else f"text of {key}"
        user = self.user_at(author)
        operation = self.history.start(process, "publish", user, text)
        self._launch(operation, self.graphs[process].posts.publish(user, text, idempotency_key=key), calls)

    @rule(process=apis, pair=pairs, again=st.sampled_from((False, False, False, True)), calls=calls)
    def toggle_follow(self, process: str, pair: tuple[int, int], again: bool, calls: int) -> None:
        """A user follows or unfollows another user: usually the opposite of the current state."""
        v, a = self.user_at(pair[0]), self.user_at(pair[0] + 1 + pair[1] % (self.population - 1))
        follows = self.raw.zscore(keys.following(v), str(a)) is not None
        kind = "unfollow" if follows is not again else "follow"
        work = getattr(self.graphs[process].follows, kind)(v, [a])
        self._launch(self.history.start(process, kind, v, a), work, calls)

    @rule(process=apis, which=st.integers(0, 20), calls=calls)
    def delete(self, process: str, which: int, calls: int) -> None:
        """An author deletes a published post."""
        published = [op.result for op in self.history.operations if op.kind == "publish" and op.done]
        if published:
            post = published[which % len(published)]
            work = self.graphs[process].posts.delete(post.author, post.id)
            self._launch(self.history.start(process, "delete", post.id), work, calls)

    @rule(process=apis, viewer=users, size=st.sampled_from((1, 2, 7)), forward=st.booleans(), calls=calls)
    def read(self, process: str, viewer: int, size: int, forward: bool, calls: int) -> None:
        """A user reads a home timeline to its end, page by page, in one direction."""
        user = self.user_at(viewer)
        operation = self.history.start(process, "read", user)
        self._launch(operation, whole_timeline(self.graphs[process], user, size, forward=forward), calls)

    @precondition(lambda self: all(task.done() for task in self.tasks.get("worker", ())))
    @rule(calls=calls)
    def work(self, calls: int) -> None:
        """The worker drains the log."""
        worker = self.graphs["worker"].worker(lease=timedelta(0))
        self._launch(self.history.start("worker", "work"), worker.drain(), calls)

    @rule(process=st.sampled_from((*APIS, "worker")), calls=calls)
    def archive(self, process: str, calls: int) -> None:
        """A process moves posts into the archive and deletes the rows of deleted posts."""
        archiver = self.graphs[process].archiver
        assert archiver is not None
        self._launch(self.history.start(process, "archive"), archiver.work(), calls)

    @rule(
        process=st.sampled_from((*APIS, "worker")), which=st.integers(0, 12), mode=st.sampled_from(MODES), calls=calls
    )
    def project_again(self, process: str, which: int, mode: Mode, calls: int) -> None:
        """A process projects an event of the log again, late and out of order."""
        events = self.run(self._events())
        event = events[-1 - which % len(events)]
        work = self.graphs[process].projections.project([event], mode)
        self._launch(self.history.start(process, "repeat"), work, calls)

    @rule(viewer=users)
    def evict(self, viewer: int) -> None:
        """A home cache expires."""
        self.raw.unlink(keys.home(self.user_at(viewer)))

    @precondition(lambda self: self.gate.waiting)
    @rule(choices=st.lists(st.integers(0, 5), min_size=1, max_size=15))
    def admit_calls(self, choices: list[int]) -> None:
        """Some of the waiting calls run, in any order."""
        for choice in choices:
            if self.gate.waiting:
                turn = self.gate.waiting[choice % len(self.gate.waiting)]
                self.run(self.gate.admit(turn))

    @precondition(lambda self: self.gate.waiting and self.deaths < MAX_DEATHS)
    @rule(choice=st.integers(0, 5), after=st.booleans())
    def kill(self, choice: int, after: bool) -> None:
        """A process dies right before or right after one of its calls, and is started again."""
        self.deaths += 1
        turn = self.gate.waiting[choice % len(self.gate.waiting)]
        process = turn.process
        if after:
            self.run(self.gate.admit(turn, fatal=True))
        self.run(self._end(process))
        self._boot(process)

    @precondition(lambda self: self.deaths < MAX_DEATHS)
    @rule(process=st.sampled_from((*APIS, "worker")), limit=st.sampled_from(LIMITS))
    def restart_with_other_limit(self, process: str, limit: float) -> None:
        """A process is killed and started again with another push limit."""
        self.deaths += 1
        self.limits[process] = limit
        self.run(self._end(process))
        self._boot(process)

    async def _end(self, process: str) -> None:
        """Kill a process: everything it was doing stops where it is."""
        await end(self.tasks[process])
        self.history.died(process)
        await self.graphs[process].close()

    @precondition(lambda self: len(self.history.operations) > self.at_rest + 3)
    @rule()
    def drain(self) -> None:
        """All operations finish; then the derived data must agree with the log."""
        self.at_rest = len(self.history.operations)
        self.run(self._finish_all())
        self.run(self._check_rest())

    async def _finish_all(self) -> None:
        while any(not task.done() for tasks in self.tasks.values() for task in tasks) or self.gate.waiting:
            await self.gate.run_until_blocked()
            if self.gate.waiting:
                await self.gate.admit(self.gate.waiting[0])
            else:
                await asyncio.sleep(0.001)
        for tasks in self.tasks.values():
            await asyncio.gather(*tasks)
            tasks.clear()
        graph = self._observer(self.limits["worker"])
        await graph.worker(lease=timedelta(0)).drain()
        assert graph.archiver is not None
        await graph.archiver.work()
        await graph.close()
        self.history.drained()

    def _observer(self, limit: float) -> Graph:
        """Return a graph that does not wait for turns."""
        return Graph(DirectStore(self.url), self.tuning(limit), SharedArchive(self.database))

    async def _events(self) -> list[Event]:
        graph = self._observer(math.inf)
        events = [event async for event in graph.log.replay(0, MAX_NUMBER)]
        await graph.close()
        return events

    @invariant()
    def nothing_failed(self) -> None:
        """No operation has failed unexpectedly, and no read has returned what it must not."""
        for tasks in self.tasks.values():
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()

    @invariant()
    def followees_have_their_followers(self) -> None:
        """At every moment: if v follows a, v is among the followers of a."""
        users = getattr(self, "users", ())
        with self.raw.pipeline(transaction=False) as pipeline:
            for user in users:
                pipeline.zrange(keys.following(user), 0, -1)
                pipeline.zrange(keys.followers(user), 0, -1)
            found = pipeline.execute()
        followers = dict(zip(users, found[1::2], strict=True))
        for viewer, following in zip(users, found[::2], strict=True):
            assert all(str(viewer) in followers[int(followee)] for followee in following)

    async def _check_rest(self) -> None:
        """Check that every derived key agrees with the log, however a timeline is read."""
        events = await self._events()
        world = World.of(events)
        self._check_history(events, world)
        graph = self._observer(math.inf)
        await Rest(graph, self.raw, world, self.users).check(records_are_free=not self.deaths)
        await graph.close()

    def _check_history(self, events: list[Event], world: World) -> None:
        """Check that operations that returned are in the log once, and that certain follows exist."""
        numbers = [event.number for event in events]
        assert numbers == sorted(set(numbers))
        texts = Counter((e.body.author, e.body.text) for e in events if isinstance(e.body, PostPublished))
        assert all(times == 1 for times in texts.values()), "an idempotency key was ignored"
        for operation in self.history.operations:
            if operation.kind == "publish" and operation.done:
                assert operation.result.id in numbers
        end = self.history.tick()
        for viewer in self.users:
            for other in self.users:
                certain = self.history.certainly_follows(viewer, other, end, end)
                assert viewer == other or certain is None or certain == ((viewer, other) in world.follows)

    def teardown(self) -> None:
        """Check the drained state, and close everything."""
        try:
            if self.graphs:
                self.run(self._finish_all())
                self.run(self._check_rest())
        finally:
            for process in self.tasks:
                self.run(self._end(process))
            self.raw.close()
            self.run(self.gate.run_until_blocked())


async def empty(database: Database) -> None:
    """Delete all rows of the archive."""

    async def work(connection: AsyncConnection) -> None:
        for table in (POSTS, FLOORS):
            await connection.execute(table.delete())

    await database.transaction(work)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_any_interleaving_of_two_apis_and_a_worker_keeps_the_invariants(
    store_url: str, tmp_path: Path, long_profile: bool, part: int
) -> None:
    """Crashes, repetitions, expired caches and moves into the archive included."""
    loop = asyncio.new_event_loop()
    database = Database(f"sqlite:///{tmp_path}/archive.sqlite")
    event.listen(database.engine.sync_engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF").close())
    try:
        run_state_machine_as_test(
            cast(type[RuleBasedStateMachine], lambda: Interleavings(store_url, database, loop)),
            settings=settings(
                max_examples=(25_000 if long_profile else 520) // PARTS,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run_until_complete(database.close())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
