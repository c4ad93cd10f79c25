"""Back-off of log-ins: what a failed log-in costs the network that it came from, and nobody else.

Failures count for a login and a network. After `FREE_ATTEMPTS` failures within `WINDOW_SECONDS`, further log-ins from
that network are refused, and only from that network, so nobody can lock a user out from elsewhere. The failures of all
networks together only slow log-ins down, and not those from networks where the user has logged in before and nothing
has failed since. The counts are in the store, so all processes count together.
"""

import hashlib
import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from graph import keys
from graph.errors import ProblemCode, Rejected
from graph.store.commands import script
from graph.store.store import Store

WINDOW_SECONDS = 15 * 60
FREE_ATTEMPTS = 10
FREE_ANYWHERE = 20
SLOWER_BY = 0.1  # seconds for every failure beyond those
MAX_DELAY = 2.0
REMEMBERED_FAILURES = FREE_ANYWHERE + math.ceil(MAX_DELAY / SLOWER_BY) + 1  # the newest may be taken back
REMEMBERED_NETWORKS = 10
NETWORK_SECONDS = 30 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Attempt:
    """A log-in that was counted: the account that it is for, if there is one, and the seconds that it has to wait."""

    login: str
    network: str
    id: str
    secret: str | None
    user: int | None
    delay: float


class Attempts:
    """Counts log-ins as failed before they are tried, and takes the count back from those that succeed.

    Counting first keeps many attempts at once, in one process or several, from all seeing the same count.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, login: str, network: str) -> Attempt:
        """Count an attempt and look up the account. One round trip.

        Raises Rejected (TOO_MANY_ATTEMPTS), with nothing counted, if too many from this network have failed.
        """
        id, network = secrets.token_hex(8), digest_of(login, network)
        [reply] = await self._store.send(
            [
                script("begin_attempt").call(
                    [
                        keys.login(login),
                        keys.attempts_from(login, network),
                        keys.attempts(login),
                        keys.networks(login),
                    ],
                    id,
                    network,
                    WINDOW_SECONDS,
                    FREE_ATTEMPTS,
                    REMEMBERED_FAILURES,
                )
            ]
        )
        if reply[0] == "refused":
            raise too_many_attempts(int(reply[1]))
        secret, user, *counts = reply[1:]
        return Attempt(login, network, id, secret or None, int(user) if user else None, delay_of(counts))

    async def withdraw(self, attempt: Attempt) -> None:
        """Take the count of an attempt back that was never tried. One round trip."""
        await self._store.send(
            [
                ("ZREM", keys.attempts_from(attempt.login, attempt.network), attempt.id),
                ("ZREM", keys.attempts(attempt.login), attempt.id),
            ]
        )

    async def succeed(self, attempt: Attempt) -> None:
        """Forgive the attempt's network its failures, and remember the network. One round trip."""
        counts = [keys.attempts_from(attempt.login, attempt.network), keys.attempts(attempt.login)]
        await self._store.send(
            [
                script("end_attempt").call(
                    [*counts, keys.networks(attempt.login)],
                    attempt.id,
                    attempt.network,
                    NETWORK_SECONDS,
                    REMEMBERED_NETWORKS,
                )
            ]
        )


def delay_of(counts: Sequence[int]) -> float:
    """Return the seconds that an attempt waits.

    `counts` are the earlier failures from its network, those from all, and 1 if the network is known.
    """
    own, all_, known = counts
    if known and not own:
        return 0.0
    return min(MAX_DELAY, max(0, all_ - FREE_ANYWHERE) * SLOWER_BY)


def digest_of(login: str, network: str) -> str:
    """Hash a network for the store's keys: short, and different for each login."""
    return hashlib.blake2b(f"{login} {network}".encode(errors="replace"), digest_size=8).hexdigest()


def too_many_attempts(seconds: int) -> Rejected:
    """Build the rejection of a log-in from a network that has failed too often."""
    minutes = max(1, math.ceil(seconds / 60))
    wait = "a minute" if minutes == 1 else f"{minutes} minutes"
    message = f"Too many log-ins to this account from your network have failed. Try again in {wait}."
    return Rejected.because(ProblemCode.TOO_MANY_ATTEMPTS, message, "login")
