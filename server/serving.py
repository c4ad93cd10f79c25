"""Serving with uvicorn, in one process or several."""

import contextlib
import errno
import os
import socket
import sys
import tempfile
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import Multiprocess, multiprocess

from server.app import create_app
from server.metrics import FOLDER as METRICS_FOLDER
from server.process.garbage import SERVER, freeze
from server.process.logs import logging_config
from server.settings import Settings, SettingsError
from server.transport.descriptors import listeners, raise_limit
from server.transport.http import HttpProtocol
from server.transport.websocket import SocketProtocol

GRACE_SECONDS = 8  # for running requests after SIGTERM; Docker waits ten seconds
PING_SECONDS = 20.0  # between pings of WebSockets; shorter than the idle timeouts of proxies
PONG_SECONDS = 40.0  # for a client to answer a ping: phones sleep, networks change
START_SECONDS = 60  # for a process to start, or to answer its supervisor, before it is replaced
UNHEARD_SECONDS = 60  # a connection is dropped if sent data stays unacknowledged for this long
SECURITY_HEADERS = (("x-content-type-options", "nosniff"),)


def from_environment() -> Starlette:
    """Return the application with the settings from the environment. Each process of `serve_many` calls this."""
    raise_limit()
    app = create_app(Settings.load())
    freeze(SERVER)
    return app


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on a port. Raises SettingsError if the port is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(f"Port {port} on {host} is in use. Choose another with --port.") from None
        reason = (error.strerror or str(error)).partition(" (while attempting")[0]
        raise SettingsError(f"Cannot listen on {host}, port {port}: {reason}. Check --host and --port.") from None
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit the option; other systems have timeouts of their own
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNHEARD_SECONDS * 1000)
    return listening


def serve_here(app: Starlette, listening: socket.socket, settings: Settings) -> None:
    """Serve an application in this process until it is stopped."""
    raise_limit()
    log_config = logging_config(settings.log_format)
    server = uvicorn.Server(configure(app, max_body=settings.max_body, log_config=log_config))
    freeze(SERVER)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=listeners(listening))
    if not server.started:
        sys.exit(1)


class Worker(multiprocess.Process):
    """A server process whose pipe closes when it dies, so that the supervisor never waits for a dead process."""

    def start(self) -> None:
        """Start the process, and close the supervisor's copy of the child's end of the pipe."""
        super().start()
        self.child_conn.close()


def serve_many(settings: Settings, listening: socket.socket, processes: int) -> None:
    """Serve in several processes until stopped. A process that ends early is replaced.

    Call `create_app` first to report invalid settings once: a process that cannot start is replaced again and again.
    The processes share a temporary folder for their metrics.
    """
    listening.set_inheritable(True)
    config = configure(
        "server.serving:from_environment",
        factory=True,
        workers=processes,
        timeout_worker_healthcheck=START_SECONDS,
        max_body=settings.max_body,
        log_config=logging_config(settings.log_format),
    )
    multiprocess.Process = Worker  # type: ignore[misc]  # the supervisor has no parameter for it
    with tempfile.TemporaryDirectory(prefix="fanline-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        Multiprocess(config, sockets=listeners(listening)).run()


def configure(app: Starlette | str, *, max_body: int = 100_000, **options: Any) -> uvicorn.Config:
    """Return uvicorn's configuration. WebSocket messages are not compressed: that would take 45 KB per connection."""
    return uvicorn.Config(
        app,
        http=HttpProtocol,
        ws=SocketProtocol,
        ws_max_size=max_body,
        ws_ping_interval=PING_SECONDS,
        ws_ping_timeout=PONG_SECONDS,
        ws_per_message_deflate=False,
        proxy_headers=False,  # the protocol classes read these headers, if a trusted proxy sent them
        server_header=False,
        headers=list(SECURITY_HEADERS),
        access_log=False,
        **{"timeout_graceful_shutdown": GRACE_SECONDS, **options},
    )
