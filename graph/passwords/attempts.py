"""Limits on failed log-ins, for each login and network.

After `FREE_ATTEMPTS` failures within `WINDOW_SECONDS`, further log-ins to the same login from the same network are
refused. Other networks are not affected, so an attacker cannot lock a user out. Failures from all networks together
only delay log-ins, except log-ins from networks where the user has logged in before and no log-in has failed since.
The counts are in the store, and all processes share them.
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
DELAY_STEP = 0.1  # seconds for each further failure
MAX_DELAY = 2.0
REMEMBERED_FAILURES = (
    FREE_ANYWHERE + math.ceil(MAX_DELAY / DELAY_STEP) + 1
)  # one more, because the newest may be withdrawn
REMEMBERED_NETWORKS = 10
NETWORK_SECONDS = 30 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Attempt:
    """A counted log-in attempt: the password hash and user of the account, if it exists, and the seconds to wait.

    `version` is the number of the event that changed the password last, or 0 if it is the first password.
    """

    login: str
    network: str
    id: str
    secret: str | None
    user: int | None
    delay: float
    version: int = 0


class Attempts:
    """Counts log-ins as failed before the password is checked, and removes the count after a success.

    Otherwise concurrent attempts would all see the same count.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, login: str, network: str) -> Attempt:
        """Count an attempt and return it with the account. One round trip.

        Raises Rejected (TOO_MANY_ATTEMPTS) after too many failures from this network; nothing is counted then.
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
        secret, user, version, *counts = reply[1:]
        found = int(user) if user else None
        return Attempt(login, network, id, secret or None, found, delay_of(counts), int(version))

    async def withdraw(self, attempt: Attempt) -> None:
        """Remove the count of an attempt whose password was not checked. One round trip."""
        await self._store.send(
            [
                ("ZREM", keys.attempts_from(attempt.login, attempt.network), attempt.id),
                ("ZREM", keys.attempts(attempt.login), attempt.id),
            ]
        )

    async def succeed(self, attempt: Attempt) -> None:
        """Remove the failures of the attempt's network, and remember the network. One round trip."""
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
    """Return the seconds that an attempt has to wait.

    `counts` are the numbers of earlier failures from its network and from all networks, and 1 if the network is known.
    """
    own, all_, known = counts
    if known and not own:
        return 0.0
    return min(MAX_DELAY, max(0, all_ - FREE_ANYWHERE) * DELAY_STEP)


def digest_of(login: str, network: str) -> str:
    """Return a short hash of a network for the keys of the store, different for each login."""
    return hashlib.blake2b(f"{login} {network}".encode(errors="replace"), digest_size=8).hexdigest()


def too_many_attempts(seconds: int) -> Rejected:
    """Return the rejection of a log-in after too many failures."""
    minutes = max(1, math.ceil(seconds / 60))
    wait = "a minute" if minutes == 1 else f"{minutes} minutes"
    message = f"Too many failed log-ins to this account from your network. Try again in {wait}."
    return Rejected.because(ProblemCode.TOO_MANY_ATTEMPTS, message, "login", retryAfter=seconds)


def wrong_credentials() -> Rejected:
    """Return the rejection of a log-in. It does not reveal whether the login exists."""
    return Rejected.because(ProblemCode.WRONG_CREDENTIALS, "The login or the password is wrong.")
