"""Disasters: failovers to replicas that lag, and backups of the archive that are restored."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from graph import keys
from graph.errors import Overloaded
from tests.properties.archives import Backup, Database, watermark_in
from tests.properties.model import History
from tests.properties.processes import ARCHIVERS, PROCESSES, Processes, archive_all, publish_many
from tests.properties.snapshots import Snapshot, Snapshots
from tests.properties.stores import DirectClient

MAX_SNAPSHOTS = 3


class Disaster(Enum):
    """What may happen in an example, any number of times. The values are patterns of the keys that are rolled back."""

    NONE = ""
    LOG_FAILS_OVER = "{log}*"
    """The shard of the log rolls back; the other shards do not. The processes continue."""
    STORE_FAILS_OVER = "*"
    """The whole store rolls back. The processes continue."""
    ALL_CRASH = "?*"
    """The whole store rolls back, and all processes die: no effect of a lost event may remain."""
    BACKUP_IS_RESTORED = "archive"
    """The archive goes back to a backup while nothing runs, if the log still has all later events."""


class Disasters(RuleBasedStateMachine):
    """The part of the machine with disasters."""

    processes: Processes
    disaster: Disaster
    users: list[int]

    def __init__(self, url: str, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.url = url
        self.database = database
        self.loop = loop
        self.raw = DirectClient(url)
        self.history = History()
        self.snapshots = Snapshots(url)
        self.taken: list[Snapshot] = []
        self.backups: list[Backup] = []
        self.disasters = 0

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to completion on the machine's own event loop."""
        return self.loop.run_until_complete(coroutine)

    def restart(self, process: str) -> None:
        self.run(self.processes.end(process))
        self.processes.boot(process, self.processes.limits[process])

    @precondition(
        lambda self: self.disaster is not Disaster.NONE and len(self.taken) + len(self.backups) < MAX_SNAPSHOTS
    )
    @rule()
    def lag(self) -> None:
        """A replica stops receiving writes, or an operator backs up the archive."""
        if self.disaster is not Disaster.BACKUP_IS_RESTORED:
            self.taken.append(self.snapshots.take(self.disaster.value))
        else:
            self.backups.append(self.database.back_up())

    @precondition(lambda self: self.taken)
    @rule(which=st.integers(0, MAX_SNAPSHOTS - 1))
    def fail_over(self, which: int) -> None:
        """A replica that lacks the last writes becomes the primary."""
        which %= len(self.taken)
        del self.taken[which + 1 :]
        self._begin_disaster(everything_dies=self.disaster is Disaster.ALL_CRASH)
        self.processes.journal.rolled_back |= self.snapshots.roll_back(self.taken[which])

    @precondition(lambda self: self.disaster is Disaster.LOG_FAILS_OVER or self.disaster is Disaster.STORE_FAILS_OVER)
    @rule(process=st.sampled_from(ARCHIVERS), calls=st.integers(0, 25))
    def fail_over_during_batch(self, process: str, calls: int) -> None:
        """A failover loses an event while an archiver archives it."""
        if self.history.runs(process, "archive") or self.history.runs("worker", "work"):
            return
        snapshot = self.snapshots.take(self.disaster.value)
        self.run(self._publish_now())
        operation = self.history.start(process, "archive")
        work = self.processes.perform(operation, archive_all(self.processes.graphs[process].archiver))
        self.run(self.processes.launch(operation, work, calls))
        self._begin_disaster(everything_dies=False)
        self.processes.journal.rolled_back |= self.snapshots.roll_back(snapshot)

    async def _publish_now(self) -> None:
        """Publish and project a post, without interruption."""
        graph = self.processes.observer(0.0)
        with suppress(Overloaded):
            await publish_many(graph, self.users[0], [f"during a batch {self.disasters}"])
        await graph.worker(lease=timedelta(0)).drain()
        await graph.close()

    @precondition(lambda self: self.backups)
    @rule(which=st.integers(0, MAX_SNAPSHOTS - 1))
    def restore_backup(self, which: int) -> None:
        """An operator stops everything and restores a backup of the archive, if the log holds all later events."""
        backup = self.backups[which % len(self.backups)]
        self._begin_disaster(everything_dies=True)
        if int(self.raw.get(keys.TRIMMED) or 0) <= watermark_in(backup):
            self.database.restore(backup)

    def _begin_disaster(self, *, everything_dies: bool) -> None:
        self.disasters += 1
        self.history.after_disaster = True
        for process in PROCESSES if everything_dies else ():
            self.restart(process)
