"""The open connections of one process: how many each address has, and their deadlines."""

import asyncio
import logging
from collections import Counter
from typing import Any, Protocol

from server.transport.descriptors import ceiling
from server.transport.limits import Timeouts
from server.transport.networks import network_of
from server.transport.proxies import TrustedProxies

CONNECTIONS = "connections"  # the key in the lifespan state, which every connection receives
ADDRESS = "address"
DESCRIPTORS = "descriptors"
LOG_INTERVAL = 60.0  # seconds between two log lines for the same reason

logger = logging.getLogger("fanline.server")


class Connection(Protocol):
    """The parts of a connection that `Connections` uses."""

    deadline: float

    def expire(self, now: float) -> None:
        """Handle a deadline that has passed, and set the next one."""


class Connections:
    """Counts connections, limits the number per client address, and checks all deadlines with one timer.

    `per_address` is the maximum for each IPv4 address or IPv6 /64 network; None means no limit. `refused` counts
    refused and aborted connections by reason.
    """

    def __init__(
        self,
        per_address: int | None = None,
        proxies: TrustedProxies | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        self.per_address = per_address
        self.proxies = proxies or TrustedProxies()
        self.timeouts = timeouts or Timeouts()
        self.ceiling = ceiling()
        self.refused: Counter[str] = Counter()
        self._open: dict[Connection, str | None] = {}
        self._by_address: Counter[str] = Counter()
        self._timer_runs = False
        self._logged: dict[str, float] = {}

    @staticmethod
    def of(state: dict[str, Any]) -> "Connections":
        """Return the connections in an application's state, or a new instance without limits if there are none."""
        found = state.get(CONNECTIONS)
        return found if isinstance(found, Connections) else Connections()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection, host: str | None, descriptor: int) -> str | None:
        """Add a connection from `host`, or return the reason for refusing it. O(1).

        The limit per address does not apply to trusted proxies or Unix sockets.
        """
        loop = asyncio.get_running_loop()
        holder = None
        if descriptor >= self.ceiling:
            return self._refuse(DESCRIPTORS, "the process has no more file descriptors for connections", loop.time())
        if self.per_address is not None and host is not None and not self.proxies.trusts(host):
            holder = network_of(host)
            if self._by_address[holder] >= self.per_address:
                return self._refuse(ADDRESS, f"{holder} has {self.per_address} already", loop.time())
            self._by_address[holder] += 1
        self._open[connection] = holder
        if not self._timer_runs:
            self._timer_runs = True
            loop.call_later(self.timeouts.check, self._check_deadlines, loop)
        return None

    def replace(self, old: object, new: Connection) -> None:
        """Replace a connection, as when an HTTP connection becomes a WebSocket."""
        self._open[new] = self._open.pop(old, None)  # type: ignore[call-overload]  # `old` may be of any type

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection, if it was added."""
        holder = self._open.pop(connection, None)
        if holder is not None:
            self._by_address[holder] -= 1
            if not self._by_address[holder]:
                del self._by_address[holder]

    def _check_deadlines(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call `expire` for connections whose deadline has passed. O(open connections), 50 ns each."""
        now = loop.time()
        for connection in [each for each in self._open if each.deadline <= now]:
            connection.expire(now)
        self._timer_runs = bool(self._open)
        if self._timer_runs:
            loop.call_later(self.timeouts.check, self._check_deadlines, loop)

    def _refuse(self, reason: str, text: str, now: float) -> str:
        self.refused[reason] += 1
        if now >= self._logged.get(reason, 0.0) + LOG_INTERVAL or reason not in self._logged:
            self._logged[reason] = now
            logger.warning("Refused a connection: %s. %d so far; see the metrics.", text, self.refused[reason])
        return reason
