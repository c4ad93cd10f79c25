"""Password changes.

The log holds no secrets, so a change has two parts: the new hash is stored under a nonce, and a PasswordChanged event
with the same nonce makes it the user's current hash. The projection first sets the hash, then ends the sessions that
were started with an earlier password. Because of this order, a log-in that was checked against the old hash either
starts a session that the projection then ends, or cannot start one. Of concurrent changes, the one with the highest
event number wins. If the stored hash expires before a worker projects the change, the old password stays, but the
sessions end nevertheless.
"""

import secrets

from graph import keys
from graph.accounts.sessions import Sessions
from graph.accounts.users import Users, no_account
from graph.commit import Commit
from graph.log.events import EventBody, PasswordChanged, SessionsEnded
from graph.model import Credentials
from graph.store.store import Store
from graph.text.validation import Check

NEXT_SECRET_SECONDS = 24 * 3600
"""How long a new hash waits for its event to be projected, in seconds: longer than any likely outage of a shard."""


class PasswordChanges:
    """Changes the passwords of users."""

    def __init__(self, store: Store, commit: Commit, users: Users, sessions: Sessions) -> None:
        self._store = store
        self._commit = commit
        self._users = users
        self._sessions = sessions

    async def change(
        self, user: int, current: str, new: str, *, network: str = "", user_agent: str | None = None
    ) -> Credentials:
        """Change a password, end all sessions of the user, and start and return a new session.

        Nine round trips and two hashes.

        Raises Rejected (WRONG_CREDENTIALS and TOO_MANY_ATTEMPTS like a log-in, PASSWORD_TOO_WEAK, INVALID, NOT_FOUND)
        and Overloaded; in these cases nothing is written. After any other failure, the change may have been made.
        """
        [found] = await self._users.get_many([user])
        if found is None:
            raise no_account()
        check = Check()
        check.password(new, found.login, found.name, field="newPassword")
        check.done()
        await self._users.verify_again(found.login, current, network, "currentPassword")
        secret, nonce = await self._users.hash_password(new, network), secrets.token_hex(16)
        [_, open_] = await self._store.send(
            [
                ("SET", keys.next_secret(found.login, nonce), secret, "EX", NEXT_SECRET_SECONDS),
                ("HKEYS", keys.sessions(user)),
            ]
        )
        bodies: list[EventBody] = [PasswordChanged(user, found.login, nonce)]
        if open_:
            bodies.append(SessionsEnded(user, sorted(open_)))
        changed, *_ = await self._commit(bodies)
        return await self._sessions.start(user, user_agent, changed.number)
