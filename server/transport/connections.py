"""The open connections of one process: how many, from where, and until when each may go on as it does."""

import asyncio
import logging
from collections import Counter
from typing import Any, Protocol

from server.operations.quotas import network_of
from server.transport.descriptors import ceiling
from server.transport.limits import Timeouts
from server.transport.proxies import TrustedProxies

CONNECTIONS = "connections"  # the name in the state that the application's lifespan hands to every connection
ADDRESS = "address"
DESCRIPTORS = "descriptors"
QUIET_SECONDS = 60.0  # between two log lines about the same kind of refusal

logger = logging.getLogger("fanline.server")


class Connection(Protocol):
    """What `Connections` needs of a connection."""

    deadline: float

    def expire(self, now: float) -> None:
        """Act on the deadline that has passed, and set the next one."""


class Connections:
    """Counts connections, limits those of one address, and looks at their deadlines with one timer for all.

    `per_address` is the most that one address may have; None for no limit. `refused` counts, by reason, the
    connections that were refused or cut off.
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
        self._looking = False
        self._logged: dict[str, float] = {}

    @staticmethod
    def of(state: dict[str, Any]) -> "Connections":
        """Return those of an application's state; new ones without limits if it has none."""
        found = state.get(CONNECTIONS)
        return found if isinstance(found, Connections) else Connections()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection, host: str | None, descriptor: int) -> str | None:
        """Add a new connection from `host`; return the reason if there is no room for it. O(1).

        Trusted proxies and unix sockets have no limit of their own.
        """
        loop = asyncio.get_running_loop()
        holder = None
        if descriptor >= self.ceiling:
            return self._refuse(DESCRIPTORS, "the process has no more file descriptors to give", loop.time())
        if self.per_address is not None and host is not None and not self.proxies.trusts(host):
            holder = network_of(host)
            if self._by_address[holder] >= self.per_address:
                return self._refuse(ADDRESS, f"{holder} has {self.per_address} already", loop.time())
            self._by_address[holder] += 1
        self._open[connection] = holder
        if not self._looking:
            self._looking = True
            loop.call_later(self.timeouts.look, self._look, loop)
        return None

    def hand_over(self, old: object, new: Connection) -> None:
        """Let a connection go on as another, as when a request becomes a WebSocket."""
        self._open[new] = self._open.pop(old, None)  # type: ignore[call-overload]  # anything may be asked for

    def remove(self, connection: Connection) -> None:
        """Remove a connection that has ended, if it was ever added."""
        holder = self._open.pop(connection, None)
        if holder is not None:
            self._by_address[holder] -= 1
            if not self._by_address[holder]:
                del self._by_address[holder]

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Find the connections whose deadline has passed. O(open connections), 50 ns each."""
        now = loop.time()
        for connection in [each for each in self._open if each.deadline <= now]:
            connection.expire(now)
        self._looking = bool(self._open)
        if self._looking:
            loop.call_later(self.timeouts.look, self._look, loop)

    def _refuse(self, reason: str, text: str, now: float) -> str:
        self.refused[reason] += 1
        if now >= self._logged.get(reason, 0.0) + QUIET_SECONDS or reason not in self._logged:
            self._logged[reason] = now
            logger.warning("Refused a connection: %s. %d so far, see the metrics.", text, self.refused[reason])
        return reason
