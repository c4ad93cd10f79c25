"""Load by several users at once, and the check afterwards."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graph.tasks import end
from tests.faults.checker.acknowledged import Acknowledged
from tests.faults.checker.client import Client
from tests.faults.checker.comparison import AGAIN_SECONDS, SETTLE_SECONDS, differences
from tests.faults.checker.listeners import EventsListener, HomeListener, Listener, NotificationsListener
from tests.faults.checker.person import Person
from tests.faults.checker.system import System

PEOPLE = 8
WATCHERS = 2  # users with a live home timeline and live notifications
THINKING = 0.05  # seconds at most between the requests of a user
PROGRESS_SECONDS = 60.0


class Load:
    """Users who act until stopped, and the clients that listen to them. `lossy` is as for `Person`."""

    def __init__(self, system: System, *, lossy: bool = False) -> None:
        self.observer = Client("observer", system.url)
        shared = Acknowledged()
        self.people = [Person(f"person{index}", system.url, shared, lossy=lossy) for index in range(PEOPLE)]
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: list[asyncio.Task[None]] = []
        self._stopped = False

    async def start(self) -> None:
        """Sign up, listen, and begin to act."""
        for client in (self.observer, *self.people):  # hashing all passwords at once would exceed the deadline
            await client.join()
        self.stream = EventsListener(self.observer, [person.id for person in self.people])
        self.homes = [HomeListener(person) for person in self.people[:WATCHERS]]
        self.feeds = [NotificationsListener(person) for person in self.people[:WATCHERS]]
        self._listening = [asyncio.create_task(listener.run()) for listener in self.listeners]
        async with asyncio.timeout(PROGRESS_SECONDS):
            await asyncio.gather(*(listener.connected.wait() for listener in self.listeners))
        self._tasks = [asyncio.create_task(self._act(person)) for person in self.people]

    @property
    def listeners(self) -> list[Listener]:
        """The clients of streams."""
        return [self.stream, *self.homes, *self.feeds]

    @property
    def acknowledged(self) -> int:
        """The number of acknowledged operations."""
        return sum(len(person.delays) for person in self.people)

    def summary(self) -> str:
        """Return the number of acknowledged operations, the longest wait, and the outcomes of requests by code."""
        answers = sum((Counter(person.answers) for person in self.people), Counter[str]())
        longest = max(delay for person in self.people for delay in person.delays)
        return (
            f"{self.acknowledged} acknowledged, at most after {longest:.1f} s; gaps {self.stream.gaps}; {dict(answers)}"
        )

    async def progress(self, operations: int) -> None:
        """Wait until this many more operations are acknowledged."""
        target = self.acknowledged + operations
        async with asyncio.timeout(PROGRESS_SECONDS):
            while self.acknowledged < target:
                self.check_tasks()
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Wait until every user's current operation is acknowledged, and start no more."""
        self.check_tasks()
        self._stopped = True
        await asyncio.gather(*self._tasks)

    def check_tasks(self) -> None:
        """Raise the error of a user or a listener that has ended before it should."""
        for task in (*([] if self._stopped else self._tasks), *self._listening):
            if task.done():
                task.result()
                raise AssertionError("a user or listener has stopped")

    def unexpected(self) -> list[str]:
        """Return the unexplained answers: errors not caused by an outage, and answers without their own change."""
        clients = [*self.people, *(listener.client for listener in self.listeners)]
        failures = [f"{each.login}: {each.unexpected()}" for each in clients if each.unexpected()]
        return [*failures, *self.people[0].acknowledged.unshown]

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        await end([*self._tasks, *self._listening])
        for client in (self.observer, *self.people, *(listener.client for listener in self.listeners)):
            await client.close()

    async def _act(self, person: Person) -> None:
        others = [other for other in self.people if other is not person]
        while not self._stopped:
            await person.act(others)
            await asyncio.sleep(random.uniform(0, THINKING))


@asynccontextmanager
async def checked(
    system: System,
    *,
    lossy: bool = False,
    gaps: bool = False,
    failovers: bool = False,
    seconds: float = SETTLE_SECONDS,
) -> AsyncIterator[Load]:
    """Run load in the block, then assert that all acknowledged changes are readable and the store needs no repair.

    With `lossy`, changes may be missing if a `Gap` announces it, and users do not block each other. With `gaps`,
    streams may have a `Gap` although no event is lost. With `failovers`, answers may be outdated. Workers have
    `seconds` to catch up.
    """
    load = Load(system, lossy=lossy)
    try:
        await load.start()
        yield load
        await load.stop()
        live = load.stream, load.homes, load.feeds
        found = await differences(load.people, *live, lossy=lossy, gaps=gaps, seconds=seconds)
        found += [] if lossy else load.unexpected()
        found += [] if lossy or failovers else load.people[0].acknowledged.outdated
        found += await defects(system, seconds)
        assert not found, "\n".join([load.summary(), *found])
        load.check_tasks()
        print(load.summary())
    finally:
        await load.close()


async def defects(system: System, seconds: float) -> list[str]:
    """Return the report of a check of the store, unless workers repair everything in it within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        code, output = await system.repair_check()
        if code == 0 or time.monotonic() > deadline:
            return [output] if code else []
        await asyncio.sleep(AGAIN_SECONDS)
