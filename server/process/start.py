"""Process startup: the process's limits, the modes of its files, and the safety checks."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from graph import Graph
from graph.archive.database import read_url
from server.process.checks import Facts, Finding, Severity, UnsafeStart, check, check_store
from server.settings import Settings
from server.transport.descriptors import UNLIMITED, raise_limit

if sys.platform != "win32":
    import resource


def start_safely(settings: Settings, warn: Callable[[str], None], host: str | None = None) -> None:
    """Set the limits of this process and its children, and run the safety checks. `host` is the address to listen on.

    Calls `warn` with a message for each unsafe condition. Raises UnsafeStart if one cannot be intentional.
    """
    set_limits(production=settings.production)
    for path in make_files_private(settings):
        warn(f"Other users of this machine could open {path}; its mode is now 600.")
    report(check(settings, observe(settings, host)), warn)


async def check_servers(graph: Graph, settings: Settings, warn: Callable[[str], None]) -> None:
    """Check the store's servers; report findings as `start_safely` does. Ignore a store that does not answer."""
    await graph.capacity.read()
    report(check_store(settings, graph.capacity.memory), warn)


def report(findings: Sequence[Finding], warn: Callable[[str], None]) -> None:
    """Call `warn` for each warning. Raises UnsafeStart if there are refusals."""
    for finding in findings:
        if finding.severity is Severity.WARN:
            warn(finding.text)
    refusals = [finding.text for finding in findings if finding.severity is Severity.REFUSE]
    if refusals:
        raise UnsafeStart("\n".join(refusals))


def set_limits(*, production: bool) -> None:
    """Raise the limit on open files. In production, disable core dumps, which would contain keys."""
    raise_limit()
    if production and sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def make_files_private(settings: Settings) -> Iterator[Path]:
    """Set the mode of data files to 600 if every user of the machine can open them. Yield the changed files.

    Older versions created the archive with such modes. Files that only the owner and the group can open are left
    unchanged: backups may use the group.
    """
    for path in data_files(settings):
        with contextlib.suppress(OSError):  # missing, or owned by another user: the checks look at the mode
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                state = os.fstat(descriptor)
                if stat.S_ISREG(state.st_mode) and state.st_mode & 0o007:
                    os.fchmod(descriptor, 0o600)
                    yield path
            finally:
                os.close(descriptor)


def data_files(settings: Settings) -> Iterator[Path]:
    """Yield the data files outside the embedded store's folder, which is private."""
    if not settings.secret and not settings.secret_file:
        yield settings.data_dir / "secret"
    if archive := archive_file(settings):
        yield from (archive, archive.with_name(f"{archive.name}-wal"), archive.with_name(f"{archive.name}-shm"))


def archive_file(settings: Settings) -> Path | None:
    """Return the file of an SQLite archive, or None if the archive is on a server."""
    url = read_url(settings.archive)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def observe(settings: Settings, host: str | None = None) -> Facts:
    """Return the facts for the checks. Raises SettingsError if, in production, the keys cannot be read."""
    files = {*data_files(settings), *([settings.secret_file] if settings.secret_file else [])}
    if settings.store_url is None or any(file.parent == settings.data_dir for file in files):
        files.add(settings.data_dir)
    return Facts(
        uid=os.getuid() if hasattr(os, "getuid") else -1,
        open_files=_open_files(),
        modes={file: mode for file in sorted(files) if (mode := _mode(file)) is not None},
        keys=settings.keys() if settings.production else (),
        host=host,
    )


def _open_files() -> int:
    if sys.platform == "win32":
        return UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
