"""Attackers: a process of its own, which keeps up one attack at a bounded rate until it is told to stop.

`python -m benchmarks.attackers PORT` reads the world as a line of JSON, then lines: the name of an attack starts it, an
empty line stops it, and is answered with what was sent. The process ends with its input.
"""

import contextlib
import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from benchmarks.live_clients import HANDSHAKE, PING, frame, message
from tests.attacks.candidates import candidates
from tests.attacks.clients import push, read_answer, request, streamed
from tests.attacks.crowds import OPENINGS
from tests.attacks.payloads import (
    COMBINING,
    EVENTS,
    FILTERS,
    FOLLOW,
    HEADS,
    LOG_IN,
    NODES,
    OVERLAPS,
    SELECTIONS,
    SIGN_UP,
    follow_stream,
    junk,
)
from tests.attacks.world import World

ADDRESS = "127.0.0.2"
THREADS = 4
WAIT = 5.0  # seconds for an answer
NICE = 10  # the readers share the processor with the attackers, and come first
KIB = 1024


@dataclass
class Target:
    """The server that is attacked, and the connections to it that an attack holds."""

    port: int
    world: World
    held: list[socket.socket] = field(default_factory=list)
    number: Iterator[int] = field(default_factory=itertools.count)

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), WAIT, (ADDRESS, 0))

    def exchange(self, *parts: bytes) -> None:
        """Send parts of a request as far as they are taken, and read the answer if there is one."""
        with self.connect() as connection:
            push(connection, parts)
            connection.settimeout(WAIT)
            read_answer(connection)

    def hold(self, most: int, *parts: bytes) -> None:
        """Send something on a connection and keep it open, unless so many are held already."""
        if len(self.held) < most:
            connection = self.connect()
            self.held.append(connection)
            connection.setblocking(False)
            connection.sendall(b"".join(parts))

    def release(self) -> None:
        """Close what is held."""
        for connection in self.held:
            connection.close()
        self.held.clear()


def documents(target: Target, at: int) -> None:
    """X1, X14: lines times errors, and selections that overlap."""
    if at % 2:
        target.exchange(request({"query": "\n" * 8_000 + NODES, "variables": {"ids": [{}] * 8_000}}))
    else:
        target.exchange(request({"query": f"{list(OVERLAPS.values())[at // 2 % len(OVERLAPS)]} #{at}"}))


def texts(target: Target, at: int) -> None:
    """X2: texts that take long to normalise."""
    given = {"login": f"u{os.getpid()}x{at}", "password": "a long pass phrase", "name": COMBINING}
    target.exchange(request({"query": SIGN_UP, "variables": {"input": given}}))


def answers(target: Target, at: int) -> None:
    """X3: the largest answers that are allowed, and larger ones."""
    written = list(candidates(target.world).values())
    target.exchange(request({"query": f"{written[at % len(written)]((100, 20, 5)[at % 3])} #{at}"}))


def pipelining(target: Target, at: int) -> None:
    """X4: requests behind a stream that does not end."""
    with target.connect() as connection:
        push(connection, [streamed(EVENTS), request(method="GET", path="/health/live") * 10_000])


def headers(target: Target, at: int) -> None:
    """X5: headers of a megabyte."""
    target.exchange(list(HEADS.values())[at % len(HEADS)](KIB * KIB))


def log_ins(target: Target, at: int) -> None:
    """X6, X7: wrong passwords, one by one and many at once."""
    wrong = {"login": target.world.logins[at % 8], "password": "a wrong pass phrase"}
    if at % 2:
        return target.exchange(request({"query": LOG_IN, "variables": {"input": wrong}}))
    field = f'logIn(input: {{login: "{wrong["login"]}", password: "wrong"}}) {{ userErrors {{ code }} }}'
    return target.exchange(request({"query": f"mutation {{ {' '.join(f'a{n}: {field}' for n in range(100))} }}"}))


def subscribed(query: str, variables: object = None) -> bytes:
    """Write the first messages of a WebSocket that subscribes."""
    payload = {"query": query, "variables": variables}
    return HANDSHAKE + message(type="connection_init") + message(type="subscribe", id="1", payload=payload)


def events(target: Target, at: int) -> None:
    """X9: many streams with large selections, and the events for them."""
    selection = list(SELECTIONS.values())[at % len(SELECTIONS)]
    target.hold(50, subscribed(follow_stream(target.world, selection, (1, 5, 50)[at % 3])))
    for connection in target.held:
        with contextlib.suppress(OSError):
            connection.recv(1 << 20)
    target.exchange(writing(target, FOLLOW, {"ids": [target.world.loud]}))


def writing(target: Target, query: str, variables: Any) -> bytes:
    """Write a mutation with a token."""
    token = [("authorization", f"Bearer {target.world.tokens['carol']}")]
    return request({"query": query, "variables": variables}, headers=token)


def silence(target: Target, at: int) -> None:
    """X10: connections that are silent, half open or slow."""
    target.hold(3_000, list(OPENINGS.values())[at % len(OPENINGS)])


def pings(target: Target, at: int) -> None:
    """X11: pings whose pongs are not read."""
    with target.connect() as connection:
        push(connection, [HANDSHAKE, frame(PING, b"x" * 125) * 8_000])


def rubbish(target: Target, at: int) -> None:
    """X13: requests that are refused, each another one."""
    target.exchange(*itertools.islice(junk(at % 11 + 1), at % 11, None))


def filters(target: Target, at: int) -> None:
    """X15: filters of thousands of terms."""
    given = list(FILTERS.values())[at % len(FILTERS)](target.world, at)
    query = "subscription ($filter: EventFilter!) { events(filter: $filter) { cursor } }"
    target.hold(1_000, subscribed(query, {"filter": given}))


def follows(target: Target, at: int) -> None:
    """X16: fifty users followed and unfollowed at a time."""
    target.exchange(writing(target, FOLLOW, {"ids": list(target.world.users[1:51])}))


@dataclass(frozen=True)
class Attack:
    """One step of an attack, and how many of them are made in a second."""

    step: Callable[[Target, int], None]
    rate: float


ATTACKS = {
    "documents (X1, X14)": Attack(documents, 50),
    "texts (X2)": Attack(texts, 50),
    "answers (X3)": Attack(answers, 50),
    "pipelining (X4)": Attack(pipelining, 20),
    "headers (X5)": Attack(headers, 30),
    "log-ins (X6, X7)": Attack(log_ins, 20),
    "events (X9)": Attack(events, 20),
    "silence (X10)": Attack(silence, 300),
    "pings (X11)": Attack(pings, 20),
    "junk (X13)": Attack(rubbish, 200),
    "filters (X15)": Attack(filters, 20),
    "follows (X16)": Attack(follows, 20),
}


class Running:
    """An attack under way, by a few threads."""

    def __init__(self, target: Target, attack: Attack) -> None:
        self._target = target
        self._attack = attack
        self._over = threading.Event()
        self._next = time.monotonic()
        self._lock = threading.Lock()
        self.steps = 0
        self._pool = ThreadPoolExecutor(THREADS)
        self._work = [self._pool.submit(self._go) for _ in range(THREADS)]

    def stop(self) -> int:
        """Stop; return how many steps were made."""
        self._over.set()
        self._pool.shutdown()
        self._target.release()
        for work in self._work:
            work.result()
        return self.steps

    def _go(self) -> None:
        while not self._over.wait(max(0.0, self._turn() - time.monotonic())):
            with contextlib.suppress(OSError, HTTPException):
                self._attack.step(self._target, next(self._target.number))
            with self._lock:
                self.steps += 1

    def _turn(self) -> float:
        """Return when this thread makes its next step. Steps that came too late are left out."""
        with self._lock:
            self._next = max(self._next + 1 / self._attack.rate, time.monotonic() - 1)
            return self._next


def read_world(line: str) -> World:
    """Read the world that is attacked."""
    told: dict[str, Any] = json.loads(line)
    told |= {name: tuple(each) for name, each in told.items() if isinstance(each, list)}
    return World(**told)


def main(port: int) -> None:
    """Attack as told."""
    os.nice(NICE)
    world = read_world(sys.stdin.readline())
    running: Running | None = None
    for line in sys.stdin:
        if running is not None:
            print(running.stop(), flush=True)
            running = None
        if name := line.strip():
            running = Running(Target(port, world), ATTACKS[name])
    if running is not None:
        running.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
