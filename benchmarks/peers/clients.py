"""Sequential requests that compare the variants' answers and measure what each query costs the store."""

import http.client
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from benchmarks.peers.processes import Server
from benchmarks.peers.queries import Query

TIMEOUT = 30.0  # seconds
CHECKED_READERS = 4
COUNTED_REQUESTS = 10
ROUND_TRIPS = re.compile(rb"^fanline_store_round_trips_total (\S+)", re.MULTILINE)


class Unequal(Exception):
    """Two variants answer a query differently. The message names them and shows both answers."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one request without concurrency: round trips of the server, and commands in the store."""

    round_trips: float
    commands: float


class Client:
    """A connection to one server."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def ask(self, query: Query, token: str) -> bytes:
        """Send a query and return `data` of the answer as JSON in orjson's format, so that white space does not matter.

        Raises RuntimeError if the answer has errors.
        """
        headers = {"content-type": "application/json", "accept": "application/json", "authorization": f"Bearer {token}"}
        self._connection.request("POST", "/graphql", query.body, headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != http.client.OK or "errors" in (answer := orjson.loads(body)):
            raise RuntimeError(f"{query.name} was answered with {response.status}: {body[:500]!r}")
        return orjson.dumps(answer["data"])

    def get(self, path: str) -> bytes:
        """Return the response of a GET request."""
        self._connection.request("GET", path)
        return self._connection.getresponse().read()


@contextmanager
def client(server: Server) -> Iterator[Client]:
    """Yield a client of a server."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)) as connection:
        yield Client(connection)


def check(servers: Sequence[Server], queries: Mapping[str, Query], readers: Sequence[str]) -> int:
    """Compare all servers' answers to all queries for some readers. Return the number of answers. Raises Unequal."""
    compared = 0
    expected: dict[tuple[str, int], bytes] = {}
    for server in servers:
        with client(server) as asking:
            for name, query in queries.items():
                for place, token in enumerate(readers[:CHECKED_READERS]):
                    answer = asking.ask(query, token)
                    first = expected.setdefault((name, place), answer)
                    if answer != first:
                        raise Unequal(different(servers[0].variant, first, server.variant, answer, name))
                    compared += 1
    return compared


def check_writing(server: Server, query: Query, writer: str) -> None:
    """Let a server write once. Raises RuntimeError if nothing is written."""
    with client(server) as asking:
        answer = asking.ask(query, writer)
    if b'"userErrors":[]' not in answer:
        raise RuntimeError(f"{server.variant} did not write anything: {answer!r}")


def different(first: str, one: bytes, second: str, other: bytes, query: str) -> str:
    """Return a message with the first difference between two answers."""
    places = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    start = max(0, next(places, min(len(one), len(other))) - 40)
    here, there = one[start : start + 120], other[start : start + 120]
    return f"{query} is answered differently:\n{first}: …{here!r}\n{second}: …{there!r}"


def cost(server: Server, query: Query, token: str, store: Any) -> Cost:
    """Return the mean cost of some sequential requests, without the cost of counting."""
    with client(server) as asking:
        asking.ask(query, token)
        counting = round_trips(asking)
        before = round_trips(asking)
        counting, commands = before - counting, processed(store)
        for _ in range(COUNTED_REQUESTS):
            asking.ask(query, token)
        sent = processed(store) - commands - 1  # without the command that read the counter
        trips = round_trips(asking) - before - counting
    return Cost(trips / COUNTED_REQUESTS, sent / COUNTED_REQUESTS)


def round_trips(asking: Client) -> float:
    """Return the number of round trips that a server has counted."""
    found = ROUND_TRIPS.search(asking.get("/metrics"))
    return float(found[1] if found else orjson.loads(asking.get("/stats"))["round_trips"])


def processed(store: Any) -> int:
    """Return the number of commands that the store has processed, including those of scripts."""
    return int(store.info("stats")["total_commands_processed"])
