"""A cluster that is lost with all its data is refilled from the archive."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.faults.checker.acknowledged import Acknowledged
from tests.faults.checker.comparison import compare_all
from tests.faults.checker.person import Person
from tests.faults.checker.reading import Reading, read
from tests.faults.checker.system import System, system_in
from tests.support.cluster import Cluster, cluster_in, kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PEOPLE = 8
ACTIONS = 40  # of each user


async def test_a_lost_cluster_is_rebuilt(tmp_path: Path, long_profile: bool) -> None:
    """The API and the worker keep running. All pages are as before, and changes are accepted again."""
    if not long_profile:
        pytest.skip("takes half a minute: needs --long")
    with cluster_in(tmp_path / "cluster") as cluster:
        async with system_in(tmp_path, cluster.url) as system:
            shared = Acknowledged()
            people = [Person(f"person{index}", system.url, shared) for index in range(PEOPLE)]
            await asyncio.gather(*(person.join() for person in people))
            await act(people)
            await check(system)
            before = await read_all(people)
            await asyncio.to_thread(lose, cluster)

            code, output = await system.run("rebuild")

            assert code == 0, output
            await system.ready()
            await asyncio.gather(*(person.log_in() for person in people))  # sessions are lost
            assert await read_all(people) == before
            await check(system)
            await act(people)
            await check(system)
            after = {person.number: reading for person, reading in zip(people, await read_all(people), strict=True)}
            assert compare_all(people, after, lossy=False) == shared.unshown == shared.outdated == []
            for person in people:
                assert not person.unexpected()
                await person.close()


async def act(people: list[Person]) -> None:
    """Let users perform random operations."""

    async def some(person: Person) -> None:
        others = [other for other in people if other is not person]
        for _ in range(ACTIONS):
            await person.act(others)

    await asyncio.gather(*map(some, people))


async def read_all(people: list[Person]) -> list[Reading]:
    """Return what each user can read."""
    return [await read(person, people[index - 1]) for index, person in enumerate(people)]


async def check(system: System) -> None:
    """Wait until everything is archived, and assert that the store and the archive agree."""
    code, output = await system.repair_check()
    assert code == 0, output


def lose(cluster: Cluster) -> None:
    """Kill all nodes, delete their data, and start an empty cluster on the same ports."""
    for node in cluster.nodes:
        kill(node)
    cluster.stop()
    (cluster.folder / "joined").unlink()
    for node in cluster.nodes:
        for path in node.folder.iterdir():
            if path.name == "appendonlydir":
                shutil.rmtree(path)
            elif path.name != "ports":
                path.unlink()
    cluster.start()
