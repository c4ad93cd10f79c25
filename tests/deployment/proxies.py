"""nginx and Caddy as processes, with the configurations of docs/deployment on other ports."""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from tests.conftest import need
from tests.server.cli.test_commands import free_port
from tests.server.conftest import Socket
from tests.support.graph_worlds import PATIENCE

FOLDER = Path(__file__).parents[2] / "docs" / "deployment"
HOST = "api.example.com"
UPSTREAM = "127.0.0.1:8000"


@dataclass(frozen=True)
class Ports:
    """The ports of a proxy, and of Fanline behind it."""

    https: int
    http: int
    upstream: int


@dataclass(frozen=True)
class Proxy:
    """A running proxy, as clients see it."""

    ports: Ports
    trust: ssl.SSLContext

    @asynccontextmanager
    async def client(self, address: str = "127.0.0.1") -> AsyncIterator[httpx.AsyncClient]:
        """Yield a client that connects from a local address."""
        transport = httpx.AsyncHTTPTransport(verify=self.trust, local_address=address)
        base_url = f"https://127.0.0.1:{self.ports.https}"
        async with httpx.AsyncClient(
            transport=_Named(transport), base_url=base_url, headers={"host": HOST}, timeout=PATIENCE
        ) as client:
            yield client

    @asynccontextmanager
    async def socket(self, address: str = "127.0.0.1", **options: Any) -> AsyncIterator[Socket]:
        """Yield a WebSocket from a local address."""
        async with connect(
            f"wss://{HOST}/graphql",
            host="127.0.0.1",
            port=self.ports.https,
            ssl=self.trust,
            local_addr=(address, 0),
            subprotocols=[Subprotocol("graphql-transport-ws")],
            **options,
        ) as connection:
            yield Socket(connection)


class _Named(httpx.AsyncBaseTransport):
    """Verifies the certificate for HOST, whatever the address."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = HOST
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


def replaced(text: str, changes: dict[str, str]) -> str:
    """Replace the parts of a configuration that depend on the machine. Each one must occur."""
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for HOST. Return its file and the file of its key."""
    need(bool(shutil.which("openssl")), "openssl")
    signed, key = folder / "fullchain.pem", folder / "privkey.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"),
            *("-keyout", str(key), "-out", str(signed)),
        ],
        check=True,
        capture_output=True,
    )
    return signed, key


def nginx(folder: Path, ports: Ports) -> list[str]:
    """Write the configuration of nginx, and return its command."""
    changes = {
        "user www-data;": "user root;" if os.geteuid() == 0 else "",
        "/run/nginx.pid": f"{folder}/pid",
        "/var/log/nginx": str(folder),
        "/etc/letsencrypt/live/api.example.com": str(folder),
        "listen [::]:80;": "",
        "listen [::]:443 ssl http2;": "",
        "listen [::]:443 ssl http2 default_server;": "",
        "listen 80;": f"listen 127.0.0.1:{ports.http};",
        "listen 443 ": f"listen 127.0.0.1:{ports.https} ",
        "worker_rlimit_nofile 65536;": "",
        "worker_connections 32768;": "worker_connections 256;",
        "client_body_timeout 10s;": "client_body_timeout 1s;",
        UPSTREAM: f"127.0.0.1:{ports.upstream}",
        "default_type": "".join(
            f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + "default_type",
    }
    (folder / "nginx.conf").write_text(replaced((FOLDER / "nginx.conf").read_text("utf-8"), changes))
    errors = str(folder / "error.log")
    return ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", errors, "-g", "daemon off;"]


def caddy(folder: Path, ports: Ports) -> list[str]:
    """Write the configuration of Caddy, and return its command."""
    changes = {
        "\tgrace_period 10s\n": f"\tgrace_period 1s\n\tadmin off\n\tdefault_bind 127.0.0.1\n"
        f"\tauto_https disable_certs\n\thttp_port {ports.http}\n\thttps_port {ports.https}\n",
        "api.example.com {\n": f"api.example.com {{\n\ttls {folder}/fullchain.pem {folder}/privkey.pem\n",
        "read_body 10s": "read_body 1s",
        UPSTREAM: f"127.0.0.1:{ports.upstream}",
    }
    (folder / "Caddyfile").write_text(replaced((FOLDER / "Caddyfile").read_text("utf-8"), changes))
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


KINDS: dict[str, Callable[[Path, Ports], list[str]]] = {"nginx": nginx, "caddy": caddy}


@asynccontextmanager
async def running(kind: str, folder: Path, upstream: int) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a local port."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    need(bool(shutil.which(kind, path=path)), f"{kind}, the package of Debian or Ubuntu")
    signed, _ = await asyncio.to_thread(certificate, folder)
    https, http = free_ports(2)
    ports = Ports(https, http, upstream)
    log = (folder / "output.log").open("wb")
    with log:
        process = await asyncio.create_subprocess_exec(
            *KINDS[kind](folder, ports), stdout=log, stderr=log, cwd=folder, env={"PATH": path, "HOME": str(folder)}
        )
    try:
        await listening(ports.https, process, partial((folder / "output.log").read_text, "utf-8"))
        yield Proxy(ports, ssl.create_default_context(cafile=str(signed)))
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def free_ports(count: int) -> list[int]:
    """Return unused ports."""
    numbers: set[int] = set()
    while len(numbers) < count:
        numbers.add(free_port())
    return list(numbers)


async def listening(port: int, process: asyncio.subprocess.Process, log: Callable[[], str]) -> None:
    """Wait until a process listens on a port."""
    async with asyncio.timeout(PATIENCE):
        while True:
            assert process.returncode is None, log()
            with closing(socket.socket()) as trying:
                trying.setblocking(False)
                try:
                    return await asyncio.get_running_loop().sock_connect(trying, ("127.0.0.1", port))
                except OSError:
                    await asyncio.sleep(0.02)
