"""Sign-ups with an idempotency key: a client that got no reply can retry, and gets a session for its account.

The nonce of the claim on the login identifies the request: it is derived from the key, the login and the name. The
nonce stays with the login, so it remains known which request created the account, even after a failover or a rebuild.
Nothing is derived from the password: a retry compares it with the stored argon2id hash, and this counts as a log-in.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graph import keys
from graph.accounts.users import Users, login_taken
from graph.commit import Commit
from graph.errors import ProblemCode, Rejected, StoreUnavailable
from graph.log.events import UserCreated
from graph.log.log import KEY_SECONDS, mismatch
from graph.log.requests import append_key, hash_of, request_of
from graph.model import User, number_at
from graph.store.store import Store


@dataclass(frozen=True, slots=True)
class SignedUp:
    """The result of a sign-up. `is_new` is False for an account that an earlier request created.

    For such an account, `password` is the number of the event that last changed the password, or 0 if none has;
    `Sessions.start` takes this number.
    """

    user: User
    password: int | None = None
    is_new: bool = True


class SignUps:
    """Sign-ups, with and without idempotency keys."""

    def __init__(self, store: Store, commit: Commit, users: Users) -> None:
        self._store = store
        self._commit = commit
        self._users = users

    async def sign_up(
        self,
        login: str,
        password: str,
        name: str | None = None,
        *,
        network: str = "",
        idempotency_key: str | None = None,
    ) -> SignedUp:
        """Create a user, or return the user whom an earlier request with this key created in the last 24 hours.

        Raises the same errors as `Users.sign_up`. For a repeated key, it also raises Rejected: IDEMPOTENCY_MISMATCH for
        another name or a wrong password, TOO_MANY_ATTEMPTS like a log-in, and LOGIN_TAKEN if the login belongs to
        another account, or to one that has since been deleted. Concurrent requests with the same key all succeed, with
        the same user. Five or six round trips and one hash; for a repeated request, seven and up to two hashes.
        """
        if idempotency_key is None:
            return SignedUp(await self._users.sign_up(login, password, name, network))
        folded, display = self._users.check_sign_up(login, password, name, idempotency_key)
        body = UserCreated(folded, display, nonce_of(folded, display, idempotency_key))
        if (await self._users.ids_of_logins([folded]))[0] is None and await self._claim(body, password, network):
            return await self._complete(body)
        return await self._repeat(body, password, network)

    async def _claim(self, body: UserCreated, password: str, network: str) -> bool:
        """Claim the login. Return False if it was already claimed or taken, perhaps by an earlier request with the key.

        An equal nonce does not prove that this request made the claim, but an equal hash does: hashes are salted.
        """
        self._commit.check_capacity()
        secret = await self._users.hash_password(password, network)
        [reply] = await self._users.claim([(body.login, body.nonce, secret)])
        return reply[0] == "claimed" and reply[2] == secret

    async def _repeat(self, body: UserCreated, password: str, network: str) -> SignedUp:
        """Return the user whom an earlier request with the key created, or complete that request.

        Raises Rejected. A stranger who has guessed a key learns nothing about the name: a wrong name is refused like a
        wrong password, and only after the password was checked.
        """
        [[nonce, user]] = await self._store.read([("HMGET", keys.login(body.login), "nonce", "user")])
        oldest = number_at(datetime.now(UTC) - timedelta(seconds=KEY_SECONDS))
        if not is_same_request(nonce, body.nonce) or (user is not None and int(user) <= oldest):
            raise login_taken()
        try:
            attempt = await self._users.attempt(body.login, password, network, claims=True)
        except Rejected as rejected:
            if rejected.problems[0].code is not ProblemCode.WRONG_CREDENTIALS:
                raise
            raise login_taken() if await self._users.is_reserved(body.login) else mismatch() from None
        if nonce != body.nonce:
            raise mismatch()
        if attempt.user is None:
            return await self._complete(body)
        [found] = await self._users.get_many([attempt.user])
        if found is not None:
            return SignedUp(found, attempt.version, is_new=False)
        completed = await self._complete(body)
        if completed.user.id != attempt.user:
            raise StoreUnavailable("the profile of a new user is not written yet")
        return SignedUp(completed.user, attempt.version, is_new=False)

    async def _complete(self, body: UserCreated) -> SignedUp:
        """Commit a claimed sign-up, possibly for a second time, and return the user."""
        await self._users.refuse_reserved(body.login, body.nonce)
        [event], is_new = await self._commit.idempotently([body], append_key(body, KEY_SECONDS))
        outcome = await self._users.settle(body, event.number, request_id(body.nonce))
        if outcome == "void":
            raise login_taken()
        return SignedUp(User(event.number, body.login, body.name, body.bio), is_new=is_new)


def nonce_of(login: str, name: str, idempotency_key: str) -> str:
    """Return the nonce of a sign-up with a key: the id of the request, and a hash of the name.

    Both hashes depend on the key, so that nobody who reads the store or the archive can test guesses at the name.
    """
    return request_of(UserCreated, login, idempotency_key) + hash_of(f"{idempotency_key} {name}")


def request_id(nonce: str) -> str:
    """Return the id of the request in the nonce of a sign-up with a key."""
    return nonce[: len(nonce) // 2]


def is_same_request(held: str | None, nonce: str) -> bool:
    """Return True if the nonce of a login comes from a request with the same login and key, even with another name."""
    return held is not None and len(held) == len(nonce) and request_id(held) == request_id(nonce)
