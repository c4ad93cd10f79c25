"""Serving with uvicorn: one process or several, on a port that was found free first."""

import contextlib
import errno
import socket
import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess

from server.app import create_app
from server.limits import MAX_BODY
from server.settings import Settings, SettingsError

GRACE_SECONDS = 5  # for requests under way when the process is told to end
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"level": "INFO", "handlers": ["stderr"]},
    "loggers": {"uvicorn": {"level": "WARNING"}},
}


def from_environment() -> Starlette:
    """Make the application as the environment has it; each of several processes calls this."""
    return create_app(Settings.load())


def bind(host: str, port: int) -> socket.socket:
    """Take a port. Raises SettingsError if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (
            "is in use" if error.errno == errno.EADDRINUSE else f"cannot be listened on ({error.strerror or error})"
        )
        raise SettingsError(f"Port {port} of {host} {reason}: choose another with --port.") from None


def serve_here(settings: Settings, listening: socket.socket, *, demo_login: str | None = None) -> None:
    """Serve in this process until it is told to end."""
    config = _config(create_app(settings, demo_login=demo_login))
    server = uvicorn.Server(config)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    if not server.started:
        sys.exit(1)


def serve_many(listening: socket.socket, processes: int) -> None:
    """Serve in several processes until told to end; one that dies is replaced."""
    listening.set_inheritable(True)
    config = _config("server.serving:from_environment", factory=True, workers=processes)
    Multiprocess(config, sockets=[listening]).run()


def _config(app: Starlette | str, **options: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=LOGGING,
        ws_max_size=MAX_BODY,
        timeout_graceful_shutdown=GRACE_SECONDS,
        server_header=False,
        **options,
    )
