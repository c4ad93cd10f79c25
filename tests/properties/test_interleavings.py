"""Two API processes, a worker and two archivers, interleaved call by call, against a reference model.

Every command for the store and every SQL statement may run before or after any call of another process, and a process
may die at any of them. The archive may fail at any statement, and a failover or a restored backup may lose what was
written last. Limits are small, so that trims, cuts, promotions and fan-out tasks occur often.
"""

import asyncio
import math
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import cast

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from graph import Graph, keys
from graph.home.pacing import Pace
from graph.log.events import ListCreated, PostPublished, ProfileChanged, Reposted, Unreposted
from graph.post_lists import REPLIED, TIMELINE
from graph.projections.mode import Mode
from graph.store.commands import Command
from graph.visibility.views import SYSTEM
from server.embedded import Durability, EmbeddedStore
from tests.properties.archives import Database
from tests.properties.deletions import DeletionRules, erase_all
from tests.properties.disasters import Disaster
from tests.properties.gate import Outage
from tests.properties.lists import MOST_LISTS, MOST_MEMBERS
from tests.properties.processes import (
    AGELESS,
    ARCHIVERS,
    PROCESSES,
    Processes,
    archive_all,
    bind,
    publish_many,
    sign_up,
)
from tests.properties.requests import calls, users
from tests.properties.rest import Rest
from tests.support.graphs import STORE_ID
from tests.support.world import World

pytestmark = pytest.mark.slow

LIMITS = (math.inf, 0.0, 1.0, 2.0)
MAX_DEATHS = 4
PARTS = 2
EXAMPLES, LONG_STEPS, STEPS = 50, 200_000, 50
NODES, EXAMPLES_ON_CLUSTER = 3, 6
MOST_EVENTS = 2_000_000
MODES = (Mode.REQUEST, Mode.WORKER)

archivers = st.sampled_from(ARCHIVERS)
processes = st.sampled_from(PROCESSES)


class Interleavings(DeletionRules):
    """Starts operations on any process, and runs their calls one by one in any order."""

    def __init__(self, url: str, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(url, database, loop)
        self.raw.flushall()
        self.raw.exchange.servers.empty()
        self.database.empty()
        self.deaths = self.at_rest = 0
        self.repaired = False

    @initialize(
        limits=st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)),
        sync=st.sampled_from((1, 100)),
        population=st.sampled_from((2, 3, 4)),
        task=st.sampled_from((1, 2, 100)),
        before=st.sampled_from((0, 3, 4, 6)),
        home_size=st.sampled_from((5, 5, 10)),
        hot=st.sampled_from(((AGELESS, 1), (AGELESS, 2), (timedelta(days=30), 2))),
        log_limit=st.sampled_from((2_000_000, 2_000_000, 40)),
        disaster=st.sampled_from((Disaster.NONE, Disaster.NONE, Disaster.LOG_FAILS_OVER, *Disaster)),
    )
    def open_processes(
        self,
        limits: tuple[float, float],
        sync: int,
        population: int,
        task: int,
        before: int,
        home_size: int,
        hot: tuple[timedelta, int],
        log_limit: int,
        disaster: Disaster,
    ) -> None:
        """Start processes with different limits, and sign up two to four users; the first one has some posts."""
        self.population = population
        self.sync = sync
        self.disaster = disaster
        tuning = {
            "home_size": home_size,
            "sync_followers": sync,
            "fan_out_task": task,
            "hot_age": hot[0],
            "hot_newest": hot[1],
            "log_limit": log_limit,
        }
        self.processes = Processes(self.url, self.database, self.history, tuning)
        self.gate, self.journal = self.processes.gate, self.processes.journal
        self.run(self._begin(before))
        for process in PROCESSES:
            self.processes.boot(process, limits[1] if process == "api-1" else limits[0])

    async def _begin(self, before: int) -> None:
        graph = self.processes.observer(math.inf)
        await bind(graph, f"{STORE_ID}:{self.database.archive_id}")
        for name in [f"user{i}" for i in range(self.population)]:
            user = await sign_up(graph, name, f"nonce of {name}", f"hash of {name}")
            assert user is not None
            self.users.append(user)
        for user in self.users:
            await graph.follows.follow(user, [other for other in self.users if other != user])
        if before:
            await publish_many(graph, self.users[0], [f"before {number}" for number in range(before)])
        await graph.worker().drain()
        world = World.of(self.journal.events())
        posts = await graph.posts.get_many(SYSTEM, list(world.posts))
        self.history.begin_anew(world, [post for post in posts if post is not None])
        await graph.close()

    @precondition(lambda self: not self.history.runs("worker", "work"))
    @rule(calls=calls)
    def work(self, calls: int) -> None:
        """The worker drains the log."""
        worker = self.graph_of("worker").worker(lease=timedelta(0))
        self._launch(self.history.start("worker", "work"), worker.drain(), calls)

    @rule(process=archivers, calls=calls)
    def archive(self, process: str, calls: int) -> None:
        """An archiver archives everything that is projected."""
        if not self.history.runs(process, "archive"):
            work = archive_all(self.graph_of(process).archiver)
            self._launch(self.history.start(process, "archive"), work, calls)

    @rule(process=archivers, calls=calls)
    def scan(self, process: str, calls: int) -> None:
        """An archiver scans the store."""
        if not self.history.runs(process, "scan"):
            self._launch(self.history.start(process, "scan"), self.graph_of(process).scan.run_pass(), calls)

    @rule(process=st.sampled_from(("worker", *ARCHIVERS)), calls=calls)
    def tidy(self, process: str, calls: int) -> None:
        """A process scrubs and trims the log; after a backup was restored, it trims only a log that is archived."""
        if not self.history.after_disaster or self.disaster is not Disaster.BACKUP_IS_RESTORED:
            self._launch(self.history.start(process, "tidy"), self.graph_of(process).housekeeping.tidy(), calls)

    @rule(process=processes, which=st.integers(0, 20), mode=st.sampled_from(MODES), calls=calls)
    def project_again(self, process: str, which: int, mode: Mode, calls: int) -> None:
        """A process projects an event again, late and out of order."""
        events = self.journal.events(but=self.journal.rolled_back)
        event = events[-1 - which % len(events)]
        work = self.graph_of(process).projections.project([event], mode)
        self._launch(self.history.start(process, "repeat", event.number), work, calls)

    @rule(viewer=users)
    def evict(self, viewer: int) -> None:
        """A home cache expires."""
        self.raw.unlink(keys.home(self.user_at(viewer)))

    @precondition(lambda self: self.gate.ready())
    @rule(choices=st.lists(st.integers(0, 7), min_size=1, max_size=15))
    def admit_calls(self, choices: list[int]) -> None:
        """Some of the waiting calls run, in any order."""
        for choice in choices:
            if ready := self.gate.ready():
                self.run(self.gate.admit(ready[choice % len(ready)]))

    @rule(process=processes, statements=st.integers(1, 4), outage=st.sampled_from(Outage))
    def archive_fails(self, process: str, statements: int, outage: Outage) -> None:
        """The next statements of a process fail, commits included, before or after they took effect."""
        self.gate.outages[process] = statements, outage

    @precondition(lambda self: self.gate.blocked())
    @rule()
    def lock_times_out(self) -> None:
        """A statement that waits for the write lock of the archive gives up."""
        self.run(self.gate.admit(self.gate.blocked()[0], outage=Outage.BEFORE))

    @precondition(lambda self: self.gate.ready() and self.deaths < MAX_DEATHS)
    @rule(choice=st.integers(0, 7), after=st.booleans())
    def kill(self, choice: int, after: bool) -> None:
        """A process dies right before or right after one of its calls, and is started again."""
        self.deaths += 1
        ready = self.gate.ready()
        turn = ready[choice % len(ready)]
        if after:
            self.run(self.gate.admit(turn, fatal=True))
        self.restart(turn.process)

    @precondition(lambda self: self.deaths < MAX_DEATHS)
    @rule(process=processes, limit=st.sampled_from(LIMITS))
    def restart_with_other_limit(self, process: str, limit: float) -> None:
        """A process is killed and started again with another push limit."""
        self.deaths += 1
        self.processes.limits[process] = limit
        self.restart(process)

    @precondition(lambda self: len(self.history.operations) > self.at_rest + 3)
    @rule()
    def rest(self) -> None:
        """All operations finish; then the derived data must agree with the events."""
        self.run(self._rest())
        self.at_rest = len(self.history.operations)

    async def _rest(self) -> None:
        await self.processes.finish()
        graph = self.processes.observer(self.processes.limits["worker"])
        await self.processes.settle(graph)
        if self.history.after_disaster:
            await self.processes.settle_failover(graph, projects_lost=self.disaster is not Disaster.ALL_CRASH)
            graph.log.limit = MOST_EVENTS  # the log may be full
            await graph.commit([ProfileChanged(self.users[0], bio=f"after disaster {self.disasters}")])
            await self.processes.settle(graph)
            self.repaired = any(not self.raw.hget(keys.post(post), "author") for post in self.journal.lost_posts())
            if self.repaired:
                await graph.repair().run(correct=True)  # lists may still have the posts
        graph.log.limit = MOST_EVENTS  # the log may be full
        await erase_all(graph, self.processes.settle)
        rest = self._checks(graph)
        if not self.deaths and not self.disasters:
            for user in self.users:
                rest.check_count(TIMELINE, user)
                rest.check_count(REPLIED, user)
        await self.processes.scan(graph)
        rest = self._checks(graph)
        await rest.check()
        await self._check_history(graph, rest.world)
        await graph.close()

    def _checks(self, graph: Graph) -> Rest:
        restored = self.disasters > 0 and self.disaster is Disaster.BACKUP_IS_RESTORED
        forgets_lost = self.disaster is Disaster.ALL_CRASH or self.repaired
        return Rest(graph, self.raw, self.database, self.journal, self.users, restored, forgets_lost)

    async def _check_history(self, graph: Graph, world: World) -> None:
        """Check that finished operations are in the log once, and that follows agree with the history."""
        if self.history.after_disaster:
            posts = await graph.posts.get_many(SYSTEM, list(world.posts))
            self.history.begin_anew(world, [post for post in posts if post is not None])
            return
        events = self.journal.events()
        texts = Counter((e.body.author, e.body.text) for e in events if isinstance(e.body, PostPublished))
        made = [each.body for each in events if isinstance(each.body, ListCreated) and each.body.request]
        lists = Counter((body.owner, body.request) for body in made)
        repeated = [each for each, times in [*texts.items(), *lists.items()] if times > 1]
        assert self.disasters or not repeated, "an idempotency key was ignored"
        reposts: dict[tuple[int, int], str] = {}
        for event in events:
            if isinstance(event.body, Reposted | Unreposted):
                pair, kind = (event.body.user, event.body.post), type(event.body).__name__
                is_repeated = reposts.get(pair) == kind and pair[0] not in world.deleted
                assert self.disasters or not is_repeated, f"{kind} of {pair} is repeated in the log"
                reposts[pair] = kind
        for operation in self.history.operations:
            if operation.kind in ("publish", "repost") and operation.done:
                assert operation.result.id in self.journal.encoded
        end = self.history.tick()
        for viewer in self.users:
            for other in self.users:
                certain = self.history.certainly_follows(viewer, other, end, end)
                assert viewer == other or certain is None or certain == ((viewer, other) in world.follows)
        self.check_certain_likes(world)

    @invariant()
    def nothing_failed(self) -> None:
        """No operation has failed unexpectedly, and no read has returned a wrong result."""
        for tasks in self.processes.tasks.values():
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()

    @invariant()
    def marks_are_in_order(self) -> None:
        """At all times: trimmed ≤ the store's archive watermark ≤ the archive's own ≤ the projection watermark."""
        if self.history.after_disaster:
            return
        names = (keys.TRIMMED, keys.ARCHIVED, keys.WATERMARK)
        trimmed, archived, watermark = (int(number or 0) for number in self.raw.mget(names))
        assert trimmed <= archived <= self.database.watermark <= watermark

    @invariant()
    def followees_have_their_followers(self) -> None:
        """At all times: if v follows a, then v is among the followers of a, unless there was a block between them."""
        if self.disasters and self.disaster is Disaster.STORE_FAILS_OVER:
            return  # a projection that continues after the failover may have lost its first half
        commands: list[Command] = []
        for user in self.users:
            commands += [("ZRANGE", key(user), 0, -1) for key in (keys.following, keys.followers)]
            names = (keys.blocking(user), keys.blockers(user))
            commands += [("ZRANGE", name, 0, -1) for name in (*names, *map(keys.gone, names))]
        found = self.raw.exchange(commands)
        followers = dict(zip(self.users, found[1::6], strict=True))
        blocks = {user: set().union(*found[6 * place + 2 : 6 * place + 6]) for place, user in enumerate(self.users)}
        for viewer, following in zip(self.users, found[::6], strict=True):
            for followee in {*following} - blocks[viewer]:
                is_blocked = str(viewer) in blocks[int(followee)]  # the block is in the first of two slots
                assert is_blocked or str(viewer) in followers[int(followee)]

    def teardown(self) -> None:
        """Check the drained state, and close everything."""
        if "processes" not in vars(self) or not self.processes.graphs:
            return
        try:
            self.run(self._rest())
        finally:
            for process in self.processes.tasks:
                self.run(self.processes.end(process))
            self.processes.close()
            self.raw.close()
            self.snapshots.close()
            self.run(self.gate.run_until_blocked())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make batches small, so that each operation needs several, and make nothing depend on the time."""
    monkeypatch.setattr("graph.archiver.hot_window_cutter.POSTS_PER_CUT", 2)
    monkeypatch.setattr("graph.archiver.like_windows.LIKES_PER_CUT", 2)
    monkeypatch.setattr("graph.archiver.lost_events.ROWS_AT_ONCE", 2)
    monkeypatch.setattr("graph.archiver.scan.KEYS_AT_ONCE", 3)
    monkeypatch.setattr("graph.commit.PROJECTION_SECONDS", 3600)
    monkeypatch.setattr("graph.projections.posts.FAN_OUT_SECONDS", 3600)
    monkeypatch.setattr("graph.people.lists.MAX_LISTS", MOST_LISTS)
    monkeypatch.setattr("graph.people.lists.MAX_MEMBERS", MOST_MEMBERS)
    monkeypatch.setattr("graph.visibility.suspensions.ANSWER_SECONDS", 3600)
    monkeypatch.setattr("graph.worker.consumer.RELEASE_SECONDS", 0)  # killed processes release nothing
    monkeypatch.setattr("graph.home.pacing.Pacer.wait", Pace.before)  # the pace depends on the time


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", range(PARTS))
def test_any_interleaving_of_apis_worker_and_archivers_keeps_the_invariants(
    store_url: str, tmp_path: Path, long_profile: bool, part: int
) -> None:
    """This includes crashes, repetitions, outages and failovers."""
    interleave(store_url, tmp_path, (LONG_STEPS // STEPS if long_profile else EXAMPLES) // PARTS)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("small")
def test_any_interleaving_on_a_cluster_keeps_the_invariants(
    single_store: EmbeddedStore, tmp_path: Path, long_profile: bool
) -> None:
    """The near caches of the APIs hold values of several nodes, which answer the reads of a round trip in any order."""
    with ExitStack() as stack:
        nodes = [EmbeddedStore(tmp_path / str(place), Durability.RELAXED) for place in range(1, NODES)]
        nodes = [single_store, *map(stack.enter_context, nodes)]
        interleave(
            ",".join(node.url for node in nodes),
            tmp_path,
            LONG_STEPS // STEPS // PARTS if long_profile else EXAMPLES_ON_CLUSTER,
        )


def interleave(url: str, folder: Path, examples: int) -> None:
    """Run examples of the machine on a store."""
    loop = asyncio.new_event_loop()
    database = Database(folder / "archive.sqlite")
    try:
        run_state_machine_as_test(
            cast(type[RuleBasedStateMachine], lambda: Interleavings(url, database, loop)),
            settings=settings(
                max_examples=examples,
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        database.close()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
