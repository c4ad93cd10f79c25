"""A measured server in a separate process: `python -m benchmarks.peers.serve VARIANT STORE_URL FOLDER`.

It writes its port, and exits at the end of its standard input.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import uvicorn

from server.transport.descriptors import listeners

VARIANTS = {
    "fanline": "product:fanline",
    "fanline-near-cache": "product:near_cache",
    "fanline-executor-off": "product:executor_off",
    "fanline-limited": "product:limited",
    "strawberry-tutorial": "tutorial:strawberry_tutorial",
    "asgi-redis-py": "asgi:asgi_redis_py",
    "ceiling": "asgi:ceiling",
}


Configure = Callable[[str, Path, str], uvicorn.Config]


def load(variant: str) -> Configure:
    """Return the function that configures a variant's server for a store's URL, a folder, and the signing key.

    The modules of the other variants are not imported.
    """
    module, _, name = VARIANTS[variant].partition(":")
    configure: Configure = getattr(import_module(f"benchmarks.peers.{module}"), name)
    return configure


def end_with_input() -> None:
    """End this process when its input is closed."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def main(variant: str, url: str, folder: str) -> None:
    """Serve until the input ends."""
    config = load(variant)(url, Path(folder), os.environ["KEY"])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=end_with_input, daemon=True).start()
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(config).run(sockets=listeners(listening))


if __name__ == "__main__":
    main(*sys.argv[1:])
