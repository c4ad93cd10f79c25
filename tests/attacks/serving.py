"""The process under attack: runs the same code as `fanline serve`, and reports its resources.

`python -m tests.attacks.serving` takes its settings from the environment and prints its port. It answers each line of
its standard input with a line of JSON. The line `collect` runs the garbage collector first. The process ends when its
input ends. With ATTACKS_CHEAP_HASHES in the environment, hashing a password takes next to no time.
"""

import asyncio
import ctypes
import gc
import json
import os
import resource
import signal
import sys
import threading

from argon2 import PasswordHasher

import graph
from graph import Graph
from server.app import create_app
from server.cli.main import PRIVATE
from server.process.start import set_limits
from server.serving import bind, serve_here
from server.settings import Settings

DESCRIPTORS = "ATTACKS_DESCRIPTORS"
CHEAP_HASHES = "ATTACKS_CHEAP_HASHES"


TRIM = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
"""Gives free memory back to the system, where glibc would keep it: what is resident then is in use."""


def read_resources() -> dict[str, int]:
    """Return the numbers of unfinished tasks, live streams and objects of this process."""
    objects = gc.get_objects()
    return {
        "tasks": sum(isinstance(each, asyncio.Task) and not each.done() for each in objects),
        "streams": sum(len(each.feed) for each in objects if type(each) is Graph),
        "objects": len(objects),
    }


def answer() -> None:
    """Answer lines until the input ends, then end the process."""
    for line in sys.stdin:
        if line == "collect\n":
            gc.collect()
            TRIM(0)
        print(json.dumps(read_resources()), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve until the input ends."""
    if descriptors := os.environ.get(DESCRIPTORS):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(descriptors), int(descriptors)))
    if os.environ.get(CHEAP_HASHES):
        vars(graph)["PasswordHasher"] = lambda *_: PasswordHasher(1, 8, 1)
    settings = Settings.load()
    os.umask(PRIVATE)
    set_limits(production=settings.production)
    with bind("127.0.0.1", 0) as listening:
        print(listening.getsockname()[1], flush=True)
        threading.Thread(target=answer, daemon=True).start()
        serve_here(create_app(settings), listening, settings)


if __name__ == "__main__":
    main()
