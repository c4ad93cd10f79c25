"""A cluster that is lost with all its data is filled again from the archive."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tests.faults.checker.person import LOG_IN, PASSWORD, Person
from tests.faults.checker.reading import read
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
            people = [Person(f"person{index}", system.url) for index in range(PEOPLE)]
            await asyncio.gather(*(person.join() for person in people))
            await act(people)
            await check(system)
            before = [await read(person) for person in people]
            await asyncio.to_thread(lose, cluster)

            code, output = await system.run("rebuild")

            assert code == 0, output
            await system.ready()
            await asyncio.gather(*map(log_in, people))
            assert [await read(person) for person in people] == before
            await check(system)
            await act(people)
            await check(system)
            for person in people:
                assert not person.unexpected()
                await person.close()


async def act(people: list[Person]) -> None:
    """Let users perform random operations."""

    async def some(person: Person) -> None:
        others = [other.id for other in people if other is not person]
        for _ in range(ACTIONS):
            await person.act(others)

    await asyncio.gather(*map(some, people))


async def check(system: System) -> None:
    """Wait until everything is archived, and assert that the store and the archive agree."""
    code, output = await system.repair_check()
    assert code == 0, output


async def log_in(person: Person) -> None:
    """Log in again, because sessions are lost."""
    person.token = ""
    answer = await person.insist(LOG_IN, login=person.login, password=PASSWORD)
    person.token = answer["logIn"]["session"]["token"]


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
