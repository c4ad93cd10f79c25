"""Run commands of Fanline in processes that are forked from one that has imported what most commands need.

A short command spends most of its time on imports. A forked process has the arguments, the environment, the folder and
the exit code of a new one, and ends like one; its output goes to files. It cannot show what a command imports at its
start, or how long that takes. Tests of imports, of servers and workers, and of signals start `fanline` itself.
"""

import atexit
import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache

IMPORTED = ("server.cli.main", "server.cli.stores")
"""The modules to import before the first command: those that all operator commands import, without GraphQL and HTTP."""
SERVING = {"serve": "server.cli.serve", "demo": "server.cli.demo", "cluster-demo": "server.cli.demo"}
"""The commands that import everything, and their modules. They are forked from a process of their own."""
ROOM = 1 << 17  # bytes of a message with the arguments and the environment
PATIENCE = 600.0  # above the time limits of nearly all tests


class Preparation:
    """A process that has imported modules and forks one command at a time. It ends when its socket is closed."""

    def __init__(self, *modules: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(PATIENCE)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import prepare; prepare({theirs.fileno()}, {modules})"],
                env={name: value for name, value in os.environ.items() if not name.startswith("FANLINE_")},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        atexit.register(self._close)

    def run(self, *arguments: str, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end. Return its output and exit code."""
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            call = json.dumps([arguments, dict(environment), os.getcwd()]).encode()
            try:
                socket.send_fds(self._socket, [call], [output.fileno(), errors.fileno()])
                code = int(self._socket.recv(ROOM))
            except BaseException:  # such as the time limit of a test
                self._kill()
                raise
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(arguments, code, output.read(), errors.read())

    def _kill(self) -> None:
        """Kill the process and its command. The next command starts a new process."""
        preparation.cache_clear()
        os.killpg(self._process.pid, signal.SIGKILL)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()


def preparation_for(command: str) -> Preparation:
    """Return the process that forks a command. There is one for each test process."""
    return preparation(*IMPORTED, *(SERVING[command],) if command in SERVING else ())


@cache
def preparation(*modules: str) -> Preparation:
    """Return the process that has imported these modules. There is one for each test process."""
    return Preparation(*modules)


def prepare(descriptor: int, modules: Sequence[str]) -> None:
    """Import modules, and run each command in a forked process, to its exit."""
    for name in modules:
        importlib.import_module(name)
    serve(socket.socket(fileno=descriptor))
    importlib.import_module("server.cli.main").main()


def serve(requests: socket.socket) -> None:
    """Fork a process for each request. Return in each of them, ready to run its command."""
    assert threading.active_count() == 1, "a forked process would lack the threads"
    while True:
        call, files, _, _ = socket.recv_fds(requests, ROOM, 2)
        if not call:
            os._exit(0)
        child = os.fork()
        if child == 0:
            requests.close()
            become(files, *json.loads(call))
            return
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(BrokenPipeError):
            requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(files: list[int], arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Take over the output, the arguments, the environment and the folder of a command."""
    for file, number in zip(files, (1, 2), strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["fanline", *arguments]
