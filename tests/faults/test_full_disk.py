"""The disk of the embedded store is full: a small file system in memory."""

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
import redis

from graph.archive.archive import Archive
from graph.errors import ArchiveUnavailable
from server.embedded import NEARLY_FULL, ROOM, EmbeddedStore
from tests.graph.archive.events import append, post

pytestmark = pytest.mark.slow

SIZE = 3 * ROOM
VALUE = "x" * 100_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a small file system."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_stops_no_reads_and_loses_nothing(disk: Path) -> None:
    """Between two checks of the disk, the server may fill it and stop. It is restarted once and then refuses writes."""
    with EmbeddedStore(disk) as store, redis.Redis.from_url(store.url) as client:
        written = 0
        client.set("first", VALUE)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(SIZE - NEARLY_FULL - 2 * len(VALUE)))
        with suppress(redis.RedisError):
            for number in range(SIZE // len(VALUE)):  # more than there is room for
                client.set(str(number), VALUE)
                written += 1

        restarts = sum(store.ensure() for _ in range(5))

        assert restarts <= 1
        assert client.get("first") == VALUE.encode()
        assert all(client.get(str(number)) == VALUE.encode() for number in range(written))
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            client.set("another", "value")

        ballast.unlink()
        assert not store.ensure()
        client.set("another", "value")
    assert written


async def append_all(archive: Archive, numbers: Iterator[int]) -> None:
    """Append a long post for each number."""
    for number in numbers:
        await append(archive, post(number, text="x" * 10_000))


async def test_an_archive_on_a_full_disk_is_unavailable_to_writers(disk: Path) -> None:
    """It can still be read, and accepts writes once there is room again."""
    archive = Archive(f"sqlite:///{disk}/archive.sqlite")
    try:
        await append(archive, post(1))
        ballast = disk / "ballast"
        with suppress(OSError):
            ballast.write_bytes(bytes(SIZE))
        numbers = count(2)
        with pytest.raises(ArchiveUnavailable) as outage:
            await append_all(archive, numbers)
        assert "full" in outage.value.reason
        refused = next(numbers) - 1
        assert await archive.post_ids(1, 0, refused) == {*range(1, refused)}

        ballast.unlink()
        await append(archive, post(refused))
        assert await archive.post_ids(1, 0, refused) == {*range(1, refused + 1)}
    finally:
        await archive.close()
