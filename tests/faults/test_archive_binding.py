"""Two stores on one archive, and one store on two archives: the command line refuses the second."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from graph import keys
from server.embedded import Durability, EmbeddedStore
from tests.faults.archive_world import archive_all, opened
from tests.server.cli.test_commands import CLEAN, FANLINE, ask, fanline, serving
from tests.support.graph_worlds import PATIENCE, people

pytestmark = pytest.mark.slow

EMPTY_STORE = "The store is empty, but the archive belongs to another store"
OTHER_ARCHIVE = "The store belongs to another archive"
OTHER_STORE = "The archive belongs to another store"
SIGN_UP = (
    'mutation { signUp(input: {login: "%s", password: "correct horse"}) { credentials { viewer { user { login } } } } }'
)


class Place:
    """Two running stores and two archives, of which the first store and the first archive belong together."""

    def __init__(self, folder: Path, stores: list[EmbeddedStore]) -> None:
        self.folder = folder
        self.stores = stores

    def environment(self, store: int, archive: int) -> dict[str, str]:
        """Return the settings of a process that uses one of the stores and one of the archives."""
        return {
            "FANLINE_STORE_URL": self.stores[store].url,
            "FANLINE_ARCHIVE_URL": f"sqlite:///{self.folder}/archive{archive}.sqlite",
            "FANLINE_DATA_DIR": str(self.folder / "data"),
        }

    def sign_up(self, store: int, archive: int, login: str) -> None:
        """Bind a store and an archive, and archive the sign-up of a user."""

        async def begin() -> None:
            environment = self.environment(store, archive)
            async with opened(environment["FANLINE_STORE_URL"], environment["FANLINE_ARCHIVE_URL"]) as graph:
                await people(graph, login)
                await archive_all(graph)

        asyncio.run(begin())


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Run two stores."""
    (tmp_path / "data").mkdir(mode=0o700)
    first, second = (EmbeddedStore(tmp_path / name, Durability.RELAXED) for name in ("one", "two"))
    with first, second:
        place = Place(tmp_path, [first, second])
        place.sign_up(0, 0, "alice")
        yield place


def check_refused(environment: dict[str, str], sentence: str) -> None:
    """Assert that commands that work on a store do not start, and explain the problem and the solution."""
    for command in (("serve", "--port", "0"), ("serve", "--port", "0", "--workers", "2"), ("worker",)):
        done = fanline(*command, **environment)
        errors = done.stderr.replace("\n", " ")
        assert done.returncode == 1
        assert sentence in errors
        assert "onfigure the store that was used" in errors or "onfigure the archive that was used" in errors
        assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("store", "archive", "other", "sentence"),
    [
        pytest.param(1, 0, None, EMPTY_STORE, id="an empty store"),
        pytest.param(1, 0, (1, 1), OTHER_ARCHIVE, id="a store of another archive"),
        pytest.param(0, 1, None, OTHER_ARCHIVE, id="a new archive"),
        pytest.param(0, 1, (1, 1), OTHER_ARCHIVE, id="an archive of another store"),
    ],
)
def test_the_second_start_is_refused(
    place: Place, store: int, archive: int, other: tuple[int, int] | None, sentence: str
) -> None:
    """Another store or archive is refused, and the first two still belong together."""
    if other:
        place.sign_up(*other, "bob")

    check_refused(place.environment(store, archive), sentence)

    assert fanline("worker", "--once", **place.environment(0, 0)).returncode == 0


def test_a_copy_of_a_store_is_refused_once_the_archive_belongs_to_another(place: Place) -> None:
    """The archive was rebuilt into a second store; the first one still names the archive."""
    rebuilt = fanline("rebuild", **place.environment(1, 0))
    assert rebuilt.returncode == 0, rebuilt.stderr

    check_refused(place.environment(0, 0), OTHER_STORE)
    assert fanline("token", "alice", **place.environment(1, 0)).returncode == 0


@contextmanager
def worker(environment: dict[str, str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a worker."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*FANLINE, "worker"], env={**CLEAN, **environment, "COLUMNS": "500"}, stdout=output, stderr=output
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_running_processes_are_fenced_off(place: Place) -> None:
    """When the archive is rebuilt into a second store, the archiver of the first store's processes stops."""
    environment = place.environment(0, 0)
    with worker(environment, place.folder / "worker.log") as process:
        with closing(redis.Redis.from_url(place.stores[0].url, decode_responses=True)) as store:
            wait_for(lambda: store.exists(keys.ARCHIVER), place.folder / "worker.log")
            assert fanline("rebuild", **place.environment(1, 0)).returncode == 0
            wait_for(lambda: store.exists(keys.ALARM), place.folder / "worker.log")
            assert OTHER_STORE in str(store.get(keys.ALARM))
        assert process.poll() is None
    assert OTHER_STORE in (place.folder / "worker.log").read_text()


def test_a_store_that_is_emptied_accepts_nothing(place: Place) -> None:
    """Processes that used the store before can write nothing to it. They work again after a rebuild."""
    environment = place.environment(0, 0)
    with (
        serving("serve", log=place.folder / "serve.log", environment=environment) as (_, port),
        redis.Redis.from_url(place.stores[0].url, decode_responses=True) as store,
    ):
        assert ask(port, SIGN_UP % "bob")["data"]["signUp"]["credentials"]
        wait_for(lambda: store.get(keys.ARCHIVED) == store.get(keys.WATERMARK), place.folder / "serve.log")
        store.flushall()

        refused = ask(port, SIGN_UP % "carol")
        assert [error["extensions"]["code"] for error in refused["errors"]] == ["STORE_UNAVAILABLE"]
        assert store.xlen(keys.LOG) == 0
        ready = f"http://127.0.0.1:{port}/health/ready"
        assert httpx.get(ready, timeout=PATIENCE).status_code == 503

        rebuilt = fanline("rebuild", **environment)
        assert rebuilt.returncode == 0, rebuilt.stderr
        assert ask(port, SIGN_UP % "carol")["data"]["signUp"]["credentials"]
        wait_for(lambda: httpx.get(ready, timeout=PATIENCE).status_code == 200)


def wait_for(condition: Any, log: Path | None = None) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, log and log.read_text()
        time.sleep(0.05)
