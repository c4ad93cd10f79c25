"""Load by several users at once, and the check afterwards."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graph.tasks import end
from tests.faults.checker.comparison import differences
from tests.faults.checker.listeners import EventsListener, HomeListener, Listener
from tests.faults.checker.person import Person
from tests.faults.checker.system import System

PEOPLE = 8
WATCHERS = 2  # users with a live home timeline
THINKING = 0.05  # seconds at most between the requests of a user
PROGRESS_SECONDS = 60.0


class Load:
    """Users who act until stopped, and the clients that listen to them."""

    def __init__(self, system: System) -> None:
        self.people = [Person(f"person{index}", system.url) for index in range(PEOPLE)]
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: list[asyncio.Task[None]] = []
        self._stopped = False

    async def start(self) -> None:
        """Sign up, listen, and begin to act."""
        for person in self.people:  # one after another: hashing all passwords at once would exceed the deadline
            await person.join()
        self.stream = EventsListener(self.people[0], [person.id for person in self.people])
        self.homes = [HomeListener(person) for person in self.people[:WATCHERS]]
        listeners: list[Listener] = [self.stream, *self.homes]
        self._listening = [asyncio.create_task(listener.run()) for listener in listeners]
        await asyncio.gather(*(listener.connected.wait() for listener in listeners))
        self._tasks = [asyncio.create_task(self._act(person)) for person in self.people]

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
                self._check_tasks()
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """Wait until every user's current operation is acknowledged, and start no more."""
        self._stopped = True
        await asyncio.gather(*self._tasks)
        self._check_tasks()

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        await end([*self._tasks, *self._listening])
        for person in self.people:
            await person.close()

    async def _act(self, person: Person) -> None:
        others = [other.id for other in self.people if other is not person]
        while not self._stopped:
            await person.act(others)
            await asyncio.sleep(random.uniform(0, THINKING))

    def _check_tasks(self) -> None:
        for task in (*self._tasks, *self._listening):
            if task.done() and not self._stopped:
                task.result()
                raise AssertionError("a user or listener has stopped")


@asynccontextmanager
async def checked(
    system: System, *, lossy: bool = False, gaps: bool = False, healed: bool = False
) -> AsyncIterator[Load]:
    """Run load during the block, then assert that all acknowledged changes are readable and the store needs no repair.

    With `lossy`, changes may be missing if a `Gap` announces it; with `gaps`, streams may have a `Gap` although no
    event is lost. With `healed`, a worker repairs the store meanwhile. Live home timelines are not compared then,
    because a repair changes pages and sends no events.
    """
    load = Load(system)
    try:
        await load.start()
        yield load
        await load.stop()
        homes = [] if healed else load.homes
        found = await differences(load.people, load.stream, homes, lossy=lossy, gaps=gaps)
        assert not found, "\n".join([load.summary(), *found])
        code, output = await system.repair_check()
        assert code == 0, output
        print(load.summary())
    finally:
        await load.close()
