"""Users: sign-up, passwords, profiles, permissions, look-ups and counts."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from operator import add
from typing import Any
from weakref import WeakValueDictionary

from argon2 import PasswordHasher
from cachetools import LRUCache

from graph import keys
from graph.commit import Commit
from graph.errors import AccountDeleted, ProblemCode, Rejected, StoreUnavailable
from graph.log.account_events import login_hash
from graph.log.events import PermissionGranted, PermissionRevoked, ProfileChanged, UserCreated
from graph.log.requests import append_key
from graph.model import Permission, User
from graph.passwords.attempts import Attempt, Attempts, wrong_credentials
from graph.passwords.hashing import Hashing
from graph.projections.accounts import free_login
from graph.records import STORED_USERS
from graph.store.commands import script
from graph.store.near_cache import NEVER, Moment
from graph.store.recall import LookUp, both_near, recall
from graph.store.store import Store
from graph.text.media_hosts import media_url
from graph.text.validation import Check, folded_login, is_possible_password, typed_login
from graph.visibility.views import View

CLAIM_SECONDS = 15 * 60
CLAIMS_PER_SCRIPT = 1000
FOLLOWERS: LookUp[int] = LookUp("ZCARD", keys.followers, (), lambda _, sizes: sizes)
FOLLOWING: LookUp[int] = LookUp("ZCARD", keys.following, (), lambda _, sizes: sizes)
HOT_POSTS: LookUp[int] = LookUp("ZCARD", keys.posts, (), lambda _, sizes: [max(0, size - 1) for size in sizes])
COLD_POSTS: LookUp[int] = LookUp("GET", keys.cold, (), lambda _, counts: [int(count or 0) for count in counts])
"""The look-ups of counts. One member of a hot timeline is its floor, which is not counted."""
INVALID_LOGIN = "-"  # attempts with logins that cannot exist are counted under this one
MAX_REMEMBERED_LOGINS = 10_000


class Users:
    """User accounts. Passwords are hashed with argon2id, in threads.

    `network` identifies where a sign-up or log-in comes from, such as the client's address: hashing is fair among
    networks, and failed log-ins are counted for each. Users' pictures must be on one of the `media_hosts`. No user can
    sign up with one of the `reserved_logins`.
    """

    def __init__(
        self,
        store: Store,
        commit: Commit,
        hasher: PasswordHasher,
        media_hosts: frozenset[str] = frozenset(),
        reserved_logins: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._media_hosts = media_hosts
        self._reserved_logins = reserved_logins
        self._commit = commit
        self.hashing = Hashing(hasher)
        self._attempts = Attempts(store)
        self._ids: LRUCache[str, int] = LRUCache(MAX_REMEMBERED_LOGINS)
        self._attempt_locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def get_many(self, ids: Sequence[int], moment: Moment | None = None) -> "asyncio.Future[list[User | None]]":
        """Return users by id, or None for unknown ids. One round trip, or none: see `recall`."""
        return recall(self._store, STORED_USERS, ids, moment)

    async def visible(
        self,
        view: View,
        ids: Sequence[int],
        load: Callable[[Sequence[int]], Awaitable[list[User | None]]] | None = None,
    ) -> list[User | None]:
        """Return users by id, or None for unknown and suspended ones. One round trip, shared with the view's reads.

        `load` replaces `get_many`, for a caller that may already have loaded some of the users.
        """
        view.begin_suspended()
        users = await (load or self.get_many)(ids)
        suspended = await view.suspended(ids)
        return (
            [None if id_ in suspended else user for id_, user in zip(ids, users, strict=True)] if suspended else users
        )

    def remembered_id(self, login: str) -> int | None:
        """Return the id of a login that this process has looked up before, else None. No round trip."""
        return self._ids.get(folded_login(login) or "")

    async def ids_of_logins(self, logins: Sequence[str]) -> list[int | None]:
        """Return ids by login, ignoring case; None for unknown logins.

        Ids are remembered, because the id of a login never changes. One round trip for the logins that are not
        remembered.
        """
        folded = [folded_login(login) for login in logins]
        known = {login: user for login in folded if login and (user := self._ids.get(login)) is not None}
        unknown = list({login for login in folded if login and login not in known})
        replies = await self._store.read([("HGET", keys.login(login), "user") for login in unknown])
        found = {login: int(user) for login, user in zip(unknown, replies, strict=True) if user}
        self._ids.update(found)
        known |= found
        return [known.get(login or "") for login in folded]

    async def is_reserved(self, login: str) -> bool:
        """Return True if a deleted user had this login, ignoring case. One round trip."""
        folded = folded_login(login)
        return folded is not None and bool(await self._store.run("EXISTS", keys.reserved(login_hash(folded))))

    def followers_counts(self, ids: Sequence[int], moment: Moment | None = None) -> "asyncio.Future[list[int]]":
        """Return each user's number of followers. One round trip, O(1) per user, or none: see `recall`."""
        return recall(self._store, FOLLOWERS, ids, moment)

    def following_counts(self, ids: Sequence[int], moment: Moment | None = None) -> "asyncio.Future[list[int]]":
        """Return the number of users whom each user follows. One round trip, O(1) per user, or none: see `recall`."""
        return recall(self._store, FOLLOWING, ids, moment)

    async def posts_counts(self, ids: Sequence[int], moment: Moment | None = None) -> list[int]:
        """Return each user's number of live posts, including archived ones. One round trip, O(1) per user, or none.

        Always one round trip if the near cache does not remember absent keys: most users have no cold posts.
        """
        if self._store.near is not None and not self._store.near.absences:
            moment = None
        near, unknown = both_near(self._store, (HOT_POSTS, COLD_POSTS), ids, moment)
        counts = {user: hot + cold for user, (hot, cold) in near.items()}
        if unknown:
            again = None if moment is None else NEVER
            reads = [recall(self._store, part, unknown, again) for part in (HOT_POSTS, COLD_POSTS)]
            counts.update(zip(unknown, map(add, *await asyncio.gather(*reads)), strict=True))
        return [counts[user] for user in ids]

    async def sign_up(self, login: str, password: str, name: str | None = None, network: str = "") -> User:
        """Create and return a user. Of concurrent sign-ups with the same login, only one succeeds; a retry is safe.

        Raises Rejected (LOGIN_INVALID, PASSWORD_TOO_WEAK, INVALID, LOGIN_TAKEN) and Overloaded; in these cases nothing
        is written. Four or five round trips and one hash.
        """
        folded, display = self.check_sign_up(login, password, name)
        if (await self.ids_of_logins([folded]))[0] is not None:
            raise login_taken()
        self._commit.check_capacity()
        nonce = await self._claim(folded, password, network)
        await self.refuse_reserved(folded, nonce)
        user = await self._commit_sign_up(folded, UserCreated(folded, display, nonce))
        if user is None:
            raise login_taken()
        return user

    def check_sign_up(
        self, login: str, password: str, name: str | None, idempotency_key: str | None = None
    ) -> tuple[str, str]:
        """Validate a sign-up, and return the login in lower case and the name.

        Raises Rejected (LOGIN_INVALID, PASSWORD_TOO_WEAK, INVALID; LOGIN_TAKEN for a reserved login).
        """
        check = Check()
        folded = check.login(login)
        if folded in self._reserved_logins:
            check.fail(ProblemCode.LOGIN_TAKEN, "This login is reserved. Choose another one.", "login")
        display = check.name(name) if name is not None else folded
        check.password(password, folded, display)
        check.idempotency_key(idempotency_key)
        check.done()
        return folded, display

    async def claim_many(self, claims: Sequence[tuple[str, str, str | None]]) -> list[bool]:
        """Claim logins for an import, and return which claims succeeded. Same arguments and cost as `claim`."""
        return [outcome == "claimed" for outcome, *_ in await self.claim(claims)]

    async def claim(self, claims: Sequence[tuple[str, str, str | None]]) -> list[Sequence[str]]:
        """Claim logins, each as (folded login, nonce, secret or None), and return the replies of `claim_login.lua`.

        A claim expires after 15 minutes unless there is a UserCreated event with its nonce. One round trip.
        """
        groups = list(self._store.together(enumerate(claims), lambda claim: keys.login(claim[1][0]), CLAIMS_PER_SCRIPT))
        commands = []
        for group in groups:
            words = [word for _, (_, nonce, secret) in group for word in (secret or "", nonce)]
            commands.append(
                script("claim_login").call([keys.login(login) for _, (login, _, _) in group], CLAIM_SECONDS, *words)
            )
        replies: dict[int, Sequence[str]] = {}
        for group, outcomes in zip(groups, await self._store.send(commands), strict=True):
            replies |= zip((place for place, _ in group), outcomes, strict=True)
        return [replies[place] for place in range(len(claims))]

    async def _claim(self, login: str, password: str, network: str) -> str:
        secret = await self.hash_password(password, network)
        [reply] = await self.claim([(login, secrets.token_hex(16), secret)])
        if reply[0] == "claimed":
            return str(reply[1])
        if reply[0] == "pending" and await self.hashing.matches(reply[1], password, network):
            return str(reply[2])
        raise login_taken()

    async def refuse_reserved(self, login: str, nonce: str) -> None:
        """Raise Rejected (LOGIN_TAKEN) and release the claim if a deleted user had the login. One or two round trips.

        A deletion reserves a login before freeing it, so a successful claim sees the reservation.
        """
        if await self.is_reserved(login):
            await self._store.send([script("release_login").call([keys.login(login)], nonce)])
            raise login_taken()

    async def _commit_sign_up(self, login: str, body: UserCreated) -> User | None:
        """Commit a claimed sign-up and return the user, or None if another sign-up won the login."""
        try:
            [event] = await self._commit([body], append_key(body, CLAIM_SECONDS))
        except Rejected:
            return None
        outcome = await self.settle(body, event.number, secrets.token_hex(16))
        return User(event.number, login, body.name, body.bio) if outcome == "won" else None

    async def settle(self, body: UserCreated, number: int, sign_up: str) -> str:
        """Turn a claim into the account of the user with this number. Return `won`, `lost` or `void`.

        `sign_up` identifies the sign-up. `settle_login.lua` explains the results. One round trip.
        """
        [[outcome]] = await self._store.send(
            [script("settle_login").call([keys.login(body.login)], sign_up, body.nonce, number)]
        )
        return str(outcome)

    async def check_password(self, login: str, password: str, network: str = "") -> User:
        """Return the user with this login and password.

        Raises Rejected (WRONG_CREDENTIALS, whether or not the login exists, and TOO_MANY_ATTEMPTS after ten failures
        from this network within 15 minutes, see `graph.passwords.attempts`), and Overloaded and StoreUnavailable, which
        are not counted as failures. A failure always takes one round trip and one hash, a success three round trips and
        one hash. A process checks one password per login and network at a time.
        """
        return (await self.log_in(login, password, network))[0]

    async def log_in(self, login: str, password: str, network: str = "") -> tuple[User, int]:
        """Return the user with this login and password, and the number of the event that last changed the password.

        The number is 0 if no event has. `Sessions.start` takes the number, so that no session starts with a password
        that has since been changed. Same errors and cost as `check_password`.
        """
        user, version = await self.verify(login, password, network)
        [found] = await self.get_many([user])
        if found is None:
            await self._refuse_deleted(login, user)
            raise StoreUnavailable("the profile of a new user is not written yet")
        return found, version

    async def _refuse_deleted(self, login: str, user: int) -> None:
        """If the user is deleted, free the login and raise Rejected (WRONG_CREDENTIALS).

        A failover can bring such a login back. Two round trips.
        """
        if await self._store.run("HEXISTS", keys.user(user), "deleted"):
            await self._store.send([free_login(typed_login(login) or "", user)])
            raise wrong_credentials()

    async def verify(self, login: str, password: str, network: str) -> tuple[int, int]:
        """Return the user's id, and the number of the event that last changed the password, or 0 if none has.

        Raises the same errors as `check_password`. Two round trips and one hash.
        """
        attempt = await self.attempt(login, password, network)
        assert attempt.user is not None  # noqa: S101 - only accounts were compared
        return attempt.user, attempt.version

    async def attempt(self, login: str, password: str, network: str, *, claims: bool = False) -> Attempt:
        """Check a password, and return the attempt with the account's user. A wrong password counts as a failure.

        With `claims`, the password of a claimed login is accepted, too; the attempt then has no user. Same errors and
        cost as `verify`.
        """
        folded = typed_login(login) or INVALID_LOGIN
        self._commit.check_capacity()
        possible = is_possible_password(password)
        async with self._attempt_locks.setdefault((folded, network), asyncio.Lock()):
            return await self._attempt(folded, password if possible else None, network, claims=claims)

    async def verify_again(self, login: str, password: str, network: str, field: str) -> None:
        """Check the password of a logged-in user. Same errors and cost as `verify`, but problems name `field`."""
        try:
            await self.verify(login, password, network)
        except Rejected as rejected:
            is_wrong = rejected.problems[0].code is ProblemCode.WRONG_CREDENTIALS
            problem = replace(rejected.problems[0], field=(field,))
            raise Rejected(replace(problem, message="The password is wrong.") if is_wrong else problem) from None

    async def _attempt(self, login: str, password: str | None, network: str, *, claims: bool) -> Attempt:
        """Check a password; None stands for an impossible one."""
        self.hashing.check_room(network)
        attempt = await self._attempts.begin(login, network)
        try:
            if attempt.delay:
                await asyncio.sleep(attempt.delay)
            await self.hashing.turn(network)
        except BaseException:
            with suppress(StoreUnavailable):
                await self._attempts.withdraw(attempt)
            raise
        counts = password is not None and (claims or attempt.user is not None)
        if not await self.hashing.verify(attempt.secret if counts else None, password or ""):
            raise wrong_credentials()
        await self._attempts.succeed(attempt)
        return attempt

    async def update_profile(
        self,
        user: int,
        *,
        name: str | None = None,
        bio: str | None = None,
        avatar_url: str | None = None,
        website_url: str | None = None,
    ) -> User:
        """Change the fields that are not None, and return the changed user. Three round trips.

        An empty text removes a bio or URL. The picture must be on one of the media hosts. Raises Rejected (INVALID,
        NOT_FOUND).
        """
        check = Check()
        changes = ProfileChanged(
            user,
            None if name is None else check.name(name),
            None if bio is None else check.bio(bio),
            None if avatar_url is None else media_url(check, avatar_url, self._media_hosts, "pictures", "avatarUrl"),
            None if website_url is None else check.url(website_url, "websiteUrl"),
        )
        check.done()
        [found] = await self.get_many([user])
        if found is None:
            raise no_account()
        changed: dict[str, Any] = dict(changes.changes())
        if changed:
            await self._commit([changes])
        changed |= {field: changed[field] or None for field in ("avatar_url", "website_url") if field in changed}
        return found._replace(**changed)

    async def permissions(self, user: int) -> frozenset[Permission]:
        """Return the permissions of a user, none for an unknown id. One round trip."""
        [numbers] = await self._store.read([("HMGET", keys.user(user), *map(keys.permission, Permission))])
        return frozenset(
            permission for permission, number in zip(Permission, numbers, strict=True) if is_granted(number)
        )

    async def grant(self, user: int, permission: Permission) -> bool:
        """Grant a permission; return False if the user already had it. Raises Rejected (NOT_FOUND). Three round trips.

        Each permission has its own events and number, so concurrent changes of different permissions do not undo each
        other. Of concurrent changes of one permission, the last in the log wins.
        """
        return await self._change_permission(PermissionGranted(user, permission.value))

    async def revoke(self, user: int, permission: Permission) -> bool:
        """Revoke a permission; return False if the user did not have it. Same errors and cost as `grant`."""
        return await self._change_permission(PermissionRevoked(user, permission.value))

    async def _change_permission(self, body: PermissionGranted | PermissionRevoked) -> bool:
        """Commit the change, even a seemingly redundant one: the log may hold an unprojected opposite change.

        Return False if the change seems redundant. Raises Rejected (NOT_FOUND).
        """
        [[id_, number]] = await self._store.read(
            [("HMGET", keys.user(body.user), "id", keys.permission(body.permission))]
        )
        if id_ is None:
            raise no_account()
        try:
            await self._commit([body])
        except AccountDeleted:
            raise no_account() from None
        return is_granted(number) != isinstance(body, PermissionGranted)

    async def hash_password(self, password: str, network: str = "") -> str:
        """Return the argon2id hash of a password. Raises Overloaded."""
        return await self.hashing.hash(password, network)


def is_granted(number: str | None) -> bool:
    """Return True if a permission is granted. `number` is that of its last change, negative if it was revoked."""
    return number is not None and int(number) > 0


def no_account() -> Rejected:
    """Return the rejection of a change to an account that does not exist."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This account does not exist.")


def login_taken() -> Rejected:
    """Return the rejection of a login that another user has."""
    return Rejected.because(ProblemCode.LOGIN_TAKEN, "This login is taken. Choose another one.", "login")
