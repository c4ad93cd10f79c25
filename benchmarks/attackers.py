"""The attackers: a separate process that runs one attack at a limited rate until it is stopped.

`python -m benchmarks.attackers PORT` reads the world as a line of JSON, then commands, one per line. The name of an
attack starts the attack. An empty line stops it and is answered with the number of steps. The process exits at the end
of its input.
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
from server.operations.cost import MAX_ARCHIVE_ROOTS
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
    invalid_requests,
)
from tests.attacks.world import World

ADDRESS = "127.0.0.2"
ADDRESSES = 10  # for the attacks that come from several addresses
THREADS = 10
WAIT = 5.0  # seconds for an answer
NICE = 10  # readers share the processor with the attackers, and have priority
KIB = 1024


@dataclass
class Target:
    """The server under attack, and the connections that an attack holds open."""

    port: int
    world: World
    held: list[socket.socket] = field(default_factory=list)
    number: Iterator[int] = field(default_factory=itertools.count)

    def connect(self, address: str = ADDRESS) -> socket.socket:
        """Return a new connection."""
        return socket.create_connection(("127.0.0.1", self.port), WAIT, (address, 0))

    def exchange(self, *parts: bytes, address: str = ADDRESS) -> None:
        """Send parts of a request until the server stops reading, and read the response if there is one."""
        with self.connect(address) as connection:
            push(connection, parts)
            connection.settimeout(WAIT)
            read_answer(connection)

    def hold(self, limit: int, *parts: bytes) -> None:
        """Open a connection, send data and keep the connection open, unless `limit` connections are open."""
        if len(self.held) < limit:
            connection = self.connect()
            self.held.append(connection)
            connection.setblocking(False)
            connection.sendall(b"".join(parts))

    def release(self) -> None:
        """Close all connections that are held open."""
        for connection in self.held:
            connection.close()
        self.held.clear()


def documents(target: Target, at: int) -> None:
    """Send documents with many lines and errors, and selections that overlap (X1, X14)."""
    if at % 2:
        target.exchange(request({"query": "\n" * 8_000 + NODES, "variables": {"ids": [{}] * 8_000}}))
    else:
        target.exchange(request({"query": f"{list(OVERLAPS.values())[at // 2 % len(OVERLAPS)]} #{at}"}))


def texts(target: Target, at: int) -> None:
    """Send a text that takes long to normalise (X2)."""
    given = {"login": f"u{os.getpid()}x{at}", "password": "a long pass phrase", "name": COMBINING}
    target.exchange(request({"query": SIGN_UP, "variables": {"input": given}}))


def answers(target: Target, at: int) -> None:
    """Request the largest responses that are allowed, and larger ones (X3)."""
    written = list(candidates(target.world).values())
    target.exchange(request({"query": f"{written[at % len(written)]((100, 20, 5)[at % 3])} #{at}"}))


def pipelining(target: Target, at: int) -> None:
    """Pipeline requests behind an endless stream (X4)."""
    with target.connect() as connection:
        push(connection, [streamed(EVENTS), request(method="GET", path="/health/live") * 10_000])


def headers(target: Target, at: int) -> None:
    """Send headers of 1 MiB (X5)."""
    target.exchange(list(HEADS.values())[at % len(HEADS)](KIB * KIB))


def log_ins(target: Target, at: int) -> None:
    """Send wrong passwords, singly and in batches (X6, X7)."""
    wrong = {"login": target.world.logins[at % 8], "password": "a wrong pass phrase"}
    if at % 2:
        return target.exchange(request({"query": LOG_IN, "variables": {"input": wrong}}))
    field = f'logIn(input: {{login: "{wrong["login"]}", password: "wrong"}}) {{ userErrors {{ code }} }}'
    return target.exchange(request({"query": f"mutation {{ {' '.join(f'a{n}: {field}' for n in range(100))} }}"}))


def subscribed(query: str, variables: object = None) -> bytes:
    """Return the first messages of a WebSocket client that subscribes."""
    payload = {"query": query, "variables": variables}
    return HANDSHAKE + message(type="connection_init") + message(type="subscribe", id="1", payload=payload)


def events(target: Target, at: int) -> None:
    """Open streams with large selections, and cause events for them (X9)."""
    selection = list(SELECTIONS.values())[at % len(SELECTIONS)]
    target.hold(50, subscribed(follow_stream(target.world, selection, (1, 5, 50)[at % 3])))
    for connection in target.held:
        with contextlib.suppress(OSError):
            connection.recv(1 << 20)
    target.exchange(mutation(target, FOLLOW, {"ids": [target.world.loud]}))


def mutation(target: Target, query: str, variables: Any) -> bytes:
    """Return the request of a mutation with a token."""
    token = [("authorization", f"Bearer {target.world.tokens['carol']}")]
    return request({"query": query, "variables": variables}, headers=token)


def silence(target: Target, at: int) -> None:
    """Hold connections that are silent, half open or slow (X10)."""
    target.hold(3_000, list(OPENINGS.values())[at % len(OPENINGS)])


def pings(target: Target, at: int) -> None:
    """Send pings without reading the pongs (X11)."""
    with target.connect() as connection:
        push(connection, [HANDSHAKE, frame(PING, b"x" * 125) * 8_000])


def refused_requests(target: Target, at: int) -> None:
    """Send various invalid requests (X13)."""
    target.exchange(*itertools.islice(invalid_requests(at % 11 + 1), at % 11, None))


def filters(target: Target, at: int) -> None:
    """Subscribe with filters of thousands of terms (X15)."""
    given = list(FILTERS.values())[at % len(FILTERS)](target.world, at)
    query = "subscription ($filter: EventFilter!) { events(filter: $filter) { cursor } }"
    target.hold(1_000, subscribed(query, {"filter": given}))


def follows(target: Target, at: int) -> None:
    """Follow 50 users in one mutation (X16)."""
    target.exchange(mutation(target, FOLLOW, {"ids": list(target.world.users[1:51])}))


def searches(target: Target, at: int) -> None:
    """Send as many searches as an operation may have, each for frequent words in the posts of many users (X20)."""
    chosen = {"users": target.world.users[:100], "keywords": ["morning", "coffee", "garden", "river"]}
    _archive(target, at, lambda place: chosen | {"keywords": [*chosen["keywords"], f"word{at}x{place}"]})


def false_candidates(target: Target, at: int) -> None:
    """Search for a phrase whose pairs of characters occur apart in many posts (X21)."""
    _archive(target, at, lambda place: {"keywords": ["北京大", f"word{at}x{place}"]})


def _archive(target: Target, at: int, filter_of: Callable[[int], dict[str, Any]]) -> None:
    names = [f"f{place}" for place in range(MAX_ARCHIVE_ROOTS)]
    head = ", ".join(f"${name}: PostFilter!" for name in names)
    fields = " ".join(
        f"{name}: searchPosts(filter: ${name}) {{ posts(first: 1) {{ pageInfo {{ hasNextPage }} }} }}" for name in names
    )
    variables = {name: filter_of(place) for place, name in enumerate(names)}
    _from_anywhere(target, at, {"query": f"query ({head}) {{ {fields} }}", "variables": variables})


def public_pages(target: Target, at: int) -> None:
    """Request the largest pages of the public timeline (X22)."""
    entry = "id author { login } ... on Post { text }"
    fields = " ".join(
        f"a{place}: publicTimeline {{ entries(first: {100 - place}) {{ nodes {{ {entry} }} }} }}"
        for place in range(MAX_ARCHIVE_ROOTS)
    )
    _from_anywhere(target, at, {"query": f"{{ {fields} }}"})


def _from_anywhere(target: Target, at: int, body: object) -> None:
    """Send a request from one of ten addresses."""
    target.exchange(request(body), address=f"127.0.1.{at % ADDRESSES + 1}")


@dataclass(frozen=True)
class Attack:
    """One step of an attack, and the number of steps per second."""

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
    "invalid requests (X13)": Attack(refused_requests, 200),
    "filters (X15)": Attack(filters, 20),
    "follows (X16)": Attack(follows, 20),
    "searches (X20)": Attack(searches, 100),
    "false candidates (X21)": Attack(false_candidates, 100),
    "public pages (X22)": Attack(public_pages, 100),
}


class Running:
    """A running attack with several threads."""

    def __init__(self, target: Target, attack: Attack) -> None:
        self._target = target
        self._attack = attack
        self._over = threading.Event()
        self._next = time.monotonic()
        self._lock = threading.Lock()
        self.steps = 0
        self._pool = ThreadPoolExecutor(THREADS)
        self._work = [self._pool.submit(self._run) for _ in range(THREADS)]

    def stop(self) -> int:
        """Stop the attack and return the number of steps."""
        self._over.set()
        self._pool.shutdown()
        self._target.release()
        for work in self._work:
            work.result()
        return self.steps

    def _run(self) -> None:
        while not self._over.wait(max(0.0, self._next_time() - time.monotonic())):
            with contextlib.suppress(OSError, HTTPException):
                self._attack.step(self._target, next(self._target.number))
            with self._lock:
                self.steps += 1

    def _next_time(self) -> float:
        """Return the time of the next step. Steps that are more than a second late are skipped."""
        with self._lock:
            self._next = max(self._next + 1 / self._attack.rate, time.monotonic() - 1)
            return self._next


def read_world(line: str) -> World:
    """Return the world in a line of JSON."""
    fields: dict[str, Any] = json.loads(line)
    fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return World(**fields)


def main(port: int) -> None:
    """Run the attacks named on standard input."""
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
