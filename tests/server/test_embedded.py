"""The embedded store: one server per folder, while processes start, stop and crash."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from graph.log.numbers import number_of
from graph.model import EPOCH_MS
from server.append_only_file import last_file
from server.embedded import Durability, EmbeddedStore, EmbeddedStoreError
from tests.support.stopped import stopped
from tests.support.stores import Killed

HOLD = """
import sys, time, pathlib
from server.embedded import EmbeddedStore
store = EmbeddedStore(pathlib.Path(sys.argv[1]))
store.start()
print(store.pid, flush=True)
sys.stdin.read()
store.stop()
"""


def client(store: EmbeddedStore) -> redis.Redis:
    return redis.Redis.from_url(store.url, decode_responses=True)


def answers(store: EmbeddedStore) -> bool:
    try:
        with client(store) as connection:
            return bool(connection.ping())
    except redis.ConnectionError:
        return False


class Holder:
    """Another process that uses the store of a folder."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.server_pid = int(self.process.stdout.readline())

    def leave(self) -> None:
        self.process.communicate("")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_data_survives_a_clean_restart(tmp_path: Path) -> None:
    """Data written before the stop is available after the next start. In between, no server is running."""
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        connection.set("greeting", "你好")
    assert not answers(store)
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert connection.get("greeting") == "你好"


def test_every_write_is_on_disk_before_it_is_answered(tmp_path: Path) -> None:
    """The server syncs its append-only file at each write, unless durability is relaxed."""
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert connection.config_get("append*")["appendonly"] == "yes"
        assert connection.config_get("appendfsync")["appendfsync"] == "always"
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store, client(store) as connection:
        assert connection.config_get("appendfsync")["appendfsync"] == "everysec"


def test_a_joining_process_may_tighten_durability_but_not_relax_it(tmp_path: Path) -> None:
    """If two processes differ, the stricter setting applies."""
    with (
        EmbeddedStore(tmp_path) as store,
        EmbeddedStore(tmp_path, Durability.RELAXED),
        client(store) as connection,
    ):
        assert connection.config_get("appendfsync")["appendfsync"] == "always"
    with (
        EmbeddedStore(tmp_path, Durability.RELAXED) as store,
        EmbeddedStore(tmp_path),
        client(store) as connection,
    ):
        assert connection.config_get("appendfsync")["appendfsync"] == "always"


def test_the_server_is_killed_and_loses_nothing(tmp_path: Path) -> None:
    """After a SIGKILL of the server, `ensure` restarts it with every acknowledged write."""
    with EmbeddedStore(tmp_path) as store:
        assert store.ensure() is False
        with client(store) as connection:
            connection.set("count", 1)
        os.kill(store.pid, signal.SIGKILL)
        assert store.ensure() is True
        with client(store) as connection:
            assert connection.get("count") == "1"


def test_two_processes_share_one_server_until_the_last_leaves(tmp_path: Path) -> None:
    """The server keeps running when the process that started it stops, and ends with the last process."""
    first = Holder(tmp_path)
    with EmbeddedStore(tmp_path) as second:
        assert second.pid == first.server_pid
        first.leave()
        assert answers(second)
    assert not answers(second)


def test_the_orphan_of_a_killed_process_is_adopted(tmp_path: Path) -> None:
    """A SIGKILL of the only process leaves the server running. The next process uses it and stops it at its end."""
    killed = Holder(tmp_path)
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        connection.set("left", "behind")
        killed.kill()
        assert store.pid == killed.server_pid
    killed = Holder(tmp_path)
    killed.kill()
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert store.pid == killed.server_pid
        assert connection.get("left") == "behind"
    assert not answers(store)


def test_an_orphan_that_cannot_be_reached_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose socket was deleted is replaced without losing acknowledged writes."""
    monkeypatch.setattr("server.embedded.HUNG_SECONDS", 0.5)
    killed = Holder(tmp_path)
    with client(EmbeddedStore(tmp_path)) as connection:
        connection.set("safe", "yes")
    killed.kill()
    EmbeddedStore(tmp_path).socket.unlink()
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert store.pid != killed.server_pid
        assert connection.get("safe") == "yes"


def test_a_server_in_use_that_is_silent_is_not_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a server in use does not answer, another process reports it and does not stop it."""
    monkeypatch.setattr("server.embedded.HUNG_SECONDS", 0.5)
    holder = Holder(tmp_path)
    try:
        with stopped(holder.server_pid), pytest.raises(EmbeddedStoreError, match="in use and does not answer"):
            EmbeddedStore(tmp_path).start()
    finally:
        holder.leave()


def test_many_starts_at_once_make_one_server(tmp_path: Path) -> None:
    """Eight processes that start at the same time use the same server, which ends with the last of them."""
    stores = [EmbeddedStore(tmp_path) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(EmbeddedStore.start, stores))
        assert len({store.pid for store in stores}) == 1
        list(pool.map(EmbeddedStore.stop, stores))
    assert not answers(stores[0])


def test_coming_and_going_never_meets_a_dying_server(tmp_path: Path) -> None:
    """Processes that start and stop at random times always have a server that answers."""

    def visit(_: int) -> bool:
        with EmbeddedStore(tmp_path, Durability.RELAXED) as store:
            return answers(store)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(visit, range(40)))


@pytest.mark.parametrize("name", ["a b", "数据", "100% #?&", "x" * 120])
def test_any_folder_name_works(tmp_path: Path, name: str) -> None:
    """Spaces, other scripts, characters special in URLs, and paths longer than a socket's may be."""
    with EmbeddedStore(tmp_path / name) as store:
        assert answers(store)
        assert len(os.fsencode(store.socket)) <= 100


def test_the_data_is_for_its_owner_only(tmp_path: Path) -> None:
    """Other users of the machine can open neither the store's folder nor its socket."""
    with EmbeddedStore(tmp_path / "new") as store:
        assert store.folder.stat().st_mode & 0o077 == 0
        assert store.socket.stat().st_mode & 0o077 == 0


def test_a_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    """The message names the folder that cannot be used."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedStoreError, match="file cannot be used"):
        EmbeddedStore(tmp_path / "file").start()


def test_a_file_without_anything_readable_is_refused(tmp_path: Path) -> None:
    """It is not emptied: the store would lose its binding to the archive."""
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        connection.set("key", "value")
    for part in (store.folder / "appendonlydir").glob("*.incr.aof"):
        part.write_bytes(b"rubbish\r\n" + part.read_bytes())
    with pytest.raises(EmbeddedStoreError, match="damaged at byte 0 of"):
        EmbeddedStore(tmp_path).start()


def test_a_start_is_quick(tmp_path: Path, long_profile: bool) -> None:
    """A first start takes well under two seconds."""
    if not long_profile:
        pytest.skip("measures time: needs --long")
    seconds = []
    for attempt in range(3):  # another process may use the machine meanwhile
        begun = time.monotonic()
        with EmbeddedStore(tmp_path / str(attempt)):
            seconds.append(time.monotonic() - begun)
    assert min(seconds) < 2


def damaged(folder: Path, change: Callable[[bytes], bytes]) -> EmbeddedStore:
    """Return the store of a folder with two events and a session, after a change of its append-only file."""
    with EmbeddedStore(folder, Durability.RELAXED) as store, client(store) as connection:
        connection.xadd("{log}", {"kind": "First"}, "1-1")
        connection.set("user:{1}", "derived")
        connection.xadd("{log}", {"kind": "Second"}, "2-1")
        connection.hset("session:{1}", "token", "9")
    file = last_file(store.folder)
    assert file is not None
    file.write_bytes(change(file.read_bytes()))
    return EmbeddedStore(folder)


def events(connection: redis.Redis) -> list[str]:
    entries: Any = connection.xrange("{log}")
    return [fields["kind"] for _, fields in entries]


def test_zero_bytes_at_the_end_are_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A crash of the machine may leave them. The removal is logged."""
    with damaged(tmp_path, lambda content: content + bytes(512)) as store, client(store) as connection:
        assert events(connection) == ["First", "Second"]
        assert connection.get("user:{1}") == "derived"
    assert "ended with 512 zero bytes, which were removed. Everything before them is intact." in caplog.text


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a command's name", lambda content: content.replace(b"\r\nSET\r\n", b"\r\nSXT\r\n")),
        ("the number of its words", lambda content: content.replace(b"*3\r\n$3\r\nSET", b"*4\r\n$3\r\nSET")),
        ("the length of a word", lambda content: content.replace(b"$8\r\nuser:{1}", b"$9\r\nuser:{1}")),
        ("a length that goes beyond the end", lambda content: content.replace(b"$8\r\nuser:{1}", b"$888\r\nuser:{1}")),
        ("zeros", lambda content: content.replace(b"SET\r\n$8\r\nuser", bytes(12))),
    ],
)
def test_events_and_sessions_after_the_damage_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, change: Callable[[bytes], bytes]
) -> None:
    """Data derived from events is removed; the worker writes it again. A copy of the removed bytes is kept."""
    with damaged(tmp_path, change) as store, client(store) as connection:
        assert events(connection) == ["First", "Second"]
        assert connection.get("user:{1}") is None
        assert connection.hgetall("session:{1}") == {"token": "9"}
        assert b"Second" in (store.folder / "removed-1.aof").read_bytes()
    assert "was damaged at its end. Its last" in caplog.text
    assert " 2 of their commands" in caplog.text
    assert not list(store.folder.glob("cut*"))


def test_an_incomplete_command_at_the_end_is_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The size is logged, and a copy is kept."""
    with damaged(tmp_path, lambda content: content[:-7]) as store, client(store) as connection:
        assert events(connection) == ["First", "Second"]
        assert not connection.exists("session:{1}")
    assert "Its last 43 bytes were removed" in caplog.text


def test_a_key_without_its_events_is_not_kept(tmp_path: Path) -> None:
    """The request that appended them may be repeated, and must then append them again."""
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store, client(store) as connection:
        connection.set("whole", "before")
        for ms, name in ((EPOCH_MS + 1, "lost"), (EPOCH_MS + 2, "kept")):
            transaction = connection.pipeline()
            transaction.xadd("{log}", {"kind": name}, f"{ms}-0")
            transaction.set(f"{{log}}:idempotency:1:{name}", f"digest {number_of(f'{ms}-0')}")
            transaction.execute()
        connection.set("{log}:idempotency:1:blank", " ")
    (store.folder / "removed-1.copy.aof").touch()
    file = last_file(store.folder)
    assert file is not None
    file.write_bytes(file.read_bytes().replace(b"XADD", b"XXXX", 1))
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert events(connection) == ["kept"]
        assert connection.keys("{log}:idempotency:*") == ["{log}:idempotency:1:kept"]


def test_a_store_that_would_forget_its_archive_is_refused(tmp_path: Path) -> None:
    """The binding was in the damaged bytes."""
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store, client(store) as connection:
        connection.set("first", "command")
        connection.set("user:{1}", "derived")
        connection.set("{log}:binding", "store:archive")
    file = last_file(store.folder)
    assert file is not None
    file.write_bytes(file.read_bytes().replace(b"$8\r\nuser", b"%8\r\nuser", 1))
    with pytest.raises(EmbeddedStoreError, match="fanline rebuild"):
        store.start()


def test_a_cut_that_was_interrupted_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a crash between planning the cut and completing the file, the next start continues."""
    store = damaged(tmp_path, lambda content: content.replace(b"\r\nSET\r\n", b"\r\nSXT\r\n"))
    file = last_file(store.folder)
    assert file is not None

    def crash(folder: Path) -> None:
        if not (folder / "cut").exists():
            return
        head = (folder / "cut").read_bytes().partition(b"\n")[0]
        os.truncate(file, int(head.split()[1]))
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("server.append_only_file.resume", crash)
        with pytest.raises(Killed):
            store.start()
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert events(connection) == ["First", "Second"]
        assert connection.hgetall("session:{1}") == {"token": "9"}


def test_damage_far_from_the_end_is_refused(tmp_path: Path) -> None:
    """The message names the byte and the command that fills a new store. The file is not changed."""
    long = b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$150000\r\n" + bytes(150_000) + b"\r\n"
    store = damaged(tmp_path, lambda content: content.replace(b"\r\nSET\r\n", b"\r\nSXT\r\n") + long)
    file = last_file(store.folder)
    assert file is not None
    content = file.read_bytes()
    with pytest.raises(EmbeddedStoreError, match=rf"damaged at byte \d+ of {len(content):,}.*`fanline rebuild`"):
        store.start()
    assert file.read_bytes() == content


def test_a_nearly_full_disk_accepts_no_writes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reads still work. When there is room again, writes work too. Each change is logged once."""
    free = 2**30
    monkeypatch.setattr("server.embedded.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        connection.set("key", "value")
        free = 2**20
        store.ensure()
        store.ensure()
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            connection.set("key", "other")
        assert connection.get("key") == "value"
        os.kill(store.pid, signal.SIGKILL)
        assert store.ensure()
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            connection.set("key", "other")
        free = 2**30
        store.ensure()
        connection.set("key", "other")
    assert caplog.text.count("is nearly full, so changes are refused") == 1
    assert caplog.text.count("has room again") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and other C libraries return free memory themselves")
def test_the_memory_of_deleted_data_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This works even if a little data remains everywhere in between. That data survives a restart."""
    monkeypatch.setattr("server.embedded.TRIM_SECONDS", 0.0)
    kept = {f"kept{n}": str(n) for n in range(0, 8000, 10)}
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store, client(store) as connection:
        for start in range(0, 8000, 10):
            connection.mset({f"{n}": "x" * 5000 for n in range(start, start + 10)} | {f"kept{start}": str(start)})
        connection.delete(*range(8000))
        before = memory(store)
        store.ensure()
        assert memory(store) < before / 2
    with EmbeddedStore(tmp_path) as store, client(store) as connection:
        assert dict(zip(kept, connection.mget(*kept), strict=True)) == kept


def memory(store: EmbeddedStore) -> int:
    """Return the memory of the server's process, in pages."""
    return int(Path(f"/proc/{store.pid}/statm").read_text("ascii").split()[1])
