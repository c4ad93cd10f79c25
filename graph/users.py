"""People: sign-up, passwords, profiles, permissions, look-ups and counts."""

import asyncio
import secrets
from collections.abc import Sequence
from itertools import starmap
from typing import Any
from weakref import WeakValueDictionary

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from graph import keys
from graph.commands import Command, script
from graph.errors import ProblemCode, Rejected
from graph.facts import PermissionGranted, PermissionRevoked, ProfileChanged, UserCreated
from graph.log import Commit, Once
from graph.model import Counts, Permission, User, new_user
from graph.store import Store
from graph.validation import Check, encodable, folded_login

CLAIM_SECONDS = 15 * 60
CLAIMS_PER_SCRIPT = 1000
ATTEMPTS_SECONDS = 15 * 60
FREE_ATTEMPTS = 10
CONCURRENT_HASHES = 2
REMEMBERED_LOGINS = 10_000
COLUMNS = ("id", "login", "name", "bio")


class Users:
    """The people of the graph. Passwords are hashed with argon2id, off the event loop, a few at a time."""

    def __init__(self, store: Store, commit: Commit, hasher: PasswordHasher) -> None:
        self._store = store
        self._commit = commit
        self._hasher = hasher
        self._hashing = asyncio.Semaphore(CONCURRENT_HASHES)
        self._decoy: str | None = None
        self._ids: dict[str, int] = {}
        self._attempts_on: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def get_many(self, ids: Sequence[int]) -> "asyncio.Future[list[User | None]]":
        """Look people up by id; None for nobody. One round trip."""
        return self._store.ask_each("HMGET", [keys.user(user) for user in ids], COLUMNS, as_users)

    def remembered_id(self, login: str) -> int | None:
        """Give the id of a login that this process has looked up before, without a round trip."""
        return self._ids.get(folded_login(login) or "")

    async def ids_of_logins(self, logins: Sequence[str]) -> list[int | None]:
        """Look ids up by login, in any case; None for nobody. O(1) a login.

        One round trip for those not met before: a login that has an id keeps it for ever, so it is remembered.
        """
        folded = [folded_login(login) for login in logins]
        unknown = list({login for login in folded if login and login not in self._ids})
        replies = await self._store.read([("HGET", keys.login(login), "user") for login in unknown])
        found = {login: int(user) for login, user in zip(unknown, replies, strict=True) if user}
        ids = [self._ids.get(login) or found.get(login) if login else None for login in folded]
        self._ids.update(found)
        while len(self._ids) > REMEMBERED_LOGINS:
            del self._ids[next(iter(self._ids))]
        return ids

    async def counts(self, ids: Sequence[int]) -> list[Counts]:
        """Count followers, followings and live posts. One round trip, O(1) a person."""
        columns = await asyncio.gather(self.followers_counts(ids), self.following_counts(ids), self.posts_counts(ids))
        return list(starmap(Counts, zip(*columns, strict=True)))

    def followers_counts(self, ids: Sequence[int]) -> "asyncio.Future[list[int]]":
        """Count people's followers: cardinalities of sets. One round trip, O(1) a person."""
        return self._store.ask_each("ZCARD", [keys.followers(user) for user in ids], (), list)

    def following_counts(self, ids: Sequence[int]) -> "asyncio.Future[list[int]]":
        """Count whom people follow: cardinalities of sets. One round trip, O(1) a person."""
        return self._store.ask_each("ZCARD", [keys.following(user) for user in ids], (), list)

    def posts_counts(self, ids: Sequence[int]) -> "asyncio.Future[list[int]]":
        """Count people's live posts, the archived ones too. One round trip, O(1) a person."""
        commands: list[Command] = []
        for user in ids:
            commands += [("ZCARD", keys.posts(user)), ("GET", keys.cold(user))]
        return self._store.ask(commands, posts_counted)

    async def sign_up(self, login: str, password: str, name: str | None = None) -> User:
        """Create a person. Of concurrent sign-ups with one login exactly one wins; a repetition after a crash is safe.

        Raises Rejected: LOGIN_INVALID, PASSWORD_TOO_WEAK, INVALID, LOGIN_TAKEN. Three to four round trips and a hash.
        """
        check = Check()
        folded = check.login(login)
        check.password(password)
        display = check.name(name) if name is not None else folded
        check.done()
        if (await self.ids_of_logins([folded]))[0] is not None:
            raise login_taken()
        nonce = await self._claim(folded, password)
        user = await self._settle(folded, UserCreated(folded, display, nonce))
        if user is None:
            raise login_taken()
        return user

    async def claim_many(self, claims: Sequence[tuple[str, str, str | None]]) -> list[bool]:
        """Claim logins for an import, each as (folded login, nonce, secret or None); tell which succeeded.

        Each claim waits a quarter of an hour for the UserCreated fact with its nonce. One round trip.
        """
        groups = list(self._store.together(enumerate(claims), lambda claim: keys.login(claim[1][0]), CLAIMS_PER_SCRIPT))
        commands = []
        for group in groups:
            words = [word for _, (_, nonce, secret) in group for word in (secret or "", nonce)]
            commands.append(
                script("claim_login").call([keys.login(login) for _, (login, _, _) in group], CLAIM_SECONDS, *words)
            )
        claimed = [False] * len(claims)
        for group, outcomes in zip(groups, await self._store.send(commands), strict=True):
            for (place, _), outcome in zip(group, outcomes, strict=True):
                claimed[place] = outcome[0] == "claimed"
        return claimed

    async def _claim(self, login: str, password: str) -> str:
        secret = await self.hash_password(password)
        [[reply]] = await self._store.send(
            [script("claim_login").call([keys.login(login)], CLAIM_SECONDS, secret, secrets.token_hex(16))]
        )
        if reply[0] == "claimed":
            return str(reply[1])
        if reply[0] == "pending" and await self._matches(reply[1], password):
            return str(reply[2])
        raise login_taken()

    async def _settle(self, login: str, event: UserCreated) -> User | None:
        """Commit a claimed sign-up; None if the account went to another sign-up."""
        try:
            [fact] = await self._commit([event], Once("-", event.nonce, CLAIM_SECONDS))
        except Rejected:
            return None
        [[outcome]] = await self._store.send(
            [script("settle_login").call([keys.login(login)], secrets.token_hex(16), event.nonce, fact.number)]
        )
        return User(fact.number, login, event.name, event.bio) if outcome == "won" else None

    async def check_password(self, login: str, password: str) -> User:
        """Give the person whose login and password these are.

        Raises Rejected: WRONG_CREDENTIALS, without telling which of the two was wrong, or TOO_MANY_ATTEMPTS after
        ten failures in a row, each within a quarter of an hour of the one before. A process tries one password of a
        login at a time, so many at once are no way round. Three round trips and a hash.
        """
        folded = folded_login(login)
        if folded is None or not encodable(password):
            raise wrong_credentials()
        async with self._attempts_on.setdefault(folded, asyncio.Lock()):
            user = await self._attempt(folded, password)
        [found] = await self.get_many([user])
        if found is None:
            raise wrong_credentials()
        return found

    async def _attempt(self, login: str, password: str) -> int:
        """Try a password on a login, unless too many have failed; give the user's id."""
        [failed, held] = await self._store.read(
            [
                ("GET", keys.attempts(login)),
                ("HMGET", keys.login(login), "secret", "user"),
            ]
        )
        if int(failed or 0) >= FREE_ATTEMPTS:
            raise Rejected.because(
                ProblemCode.TOO_MANY_ATTEMPTS,
                "Too many failed log-ins. Try again in a quarter of an hour.",
                "login",
            )
        secret, user = held
        if not await self._matches(secret if user else None, password):
            await self._store.send(
                [
                    ("INCR", keys.attempts(login)),
                    ("EXPIRE", keys.attempts(login), ATTEMPTS_SECONDS),
                ]
            )
            raise wrong_credentials()
        if failed:
            await self._store.run("DEL", keys.attempts(login))
        return int(user)

    async def update_profile(self, user: int, *, name: str | None = None, bio: str | None = None) -> User:
        """Change the fields that are not None. Raises Rejected (INVALID, NOT_FOUND). Four round trips."""
        check = Check()
        name = None if name is None else check.name(name)
        bio = None if bio is None else check.bio(bio)
        check.done()
        [found] = await self.get_many([user])
        if found is not None and (name is not None or bio is not None):
            await self._commit([ProfileChanged(user, name, bio)])
            [found] = await self.get_many([user])
        if found is None:
            raise nobody()
        return found

    async def permissions(self, user: int) -> frozenset[Permission]:
        """Tell what a person may do that not everybody may; nothing, if there is nobody. One round trip."""
        [marks] = await self._store.read([("HMGET", keys.user(user), *map(keys.permission, Permission))])
        return frozenset(permission for permission, mark in zip(Permission, marks, strict=True) if granted(mark))

    async def grant(self, user: int, permission: Permission) -> bool:
        """Give a person a permission; False if they had it. Raises Rejected (NOT_FOUND). Three round trips.

        Each permission has facts and a number of its own, and no fact carries the whole set: processes that grant and
        revoke different ones at once cannot undo each other, and of those at the same one the last in the log wins.
        """
        return await self._change_permission(PermissionGranted(user, permission.value))

    async def revoke(self, user: int, permission: Permission) -> bool:
        """Take a permission away; False if the person did not have it. Raises Rejected and costs like `grant`."""
        return await self._change_permission(PermissionRevoked(user, permission.value))

    async def _change_permission(self, event: PermissionGranted | PermissionRevoked) -> bool:
        """Commit the change even if nothing seems to change: an older one may be in the log, not yet projected."""
        [[id_, mark]] = await self._store.read(
            [("HMGET", keys.user(event.user), "id", keys.permission(event.permission))]
        )
        if id_ is None:
            raise nobody()
        await self._commit([event])
        return granted(mark) != isinstance(event, PermissionGranted)

    async def hash_password(self, password: str) -> str:
        """Hash a password with argon2id, off the event loop."""
        async with self._hashing:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def _matches(self, secret: str | None, password: str) -> bool:
        """Compare a password; where there is no secret, take as long to say no."""
        if not secret:
            self._decoy = self._decoy or await self.hash_password(secrets.token_hex(16))
        async with self._hashing:
            return await asyncio.to_thread(self._verify, secret or self._decoy or "", password) and bool(secret)

    def _verify(self, secret: str, password: str) -> bool:
        try:
            return self._hasher.verify(secret, password)
        except (VerificationError, InvalidHashError):
            return False


def as_users(rows: Sequence[Sequence[str | None]]) -> list[User | None]:
    """Read the COLUMNS of profiles; None where there is none."""
    return [
        None if id_ is None else new_user((int(id_), login or "", name or "", bio or ""))
        for id_, login, name, bio in rows
    ]


def posts_counted(replies: Sequence[Any]) -> list[int]:
    """Count live posts from the sizes of hot timelines, each with its floor, and the numbers of archived posts."""
    hot, cold = replies[::2], replies[1::2]
    return [max(0, members - 1) + int(archived or 0) for members, archived in zip(hot, cold, strict=True)]


def granted(mark: str | None) -> bool:
    """Tell whether the number beside a permission says that it was granted: revoked, it is negative."""
    return mark is not None and int(mark) > 0


def nobody() -> Rejected:
    """Make the rejection of a change to an account that is not there."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This account does not exist.")


def login_taken() -> Rejected:
    """Make the rejection of a login that somebody else has."""
    return Rejected.because(ProblemCode.LOGIN_TAKEN, "This login is taken.", "login")


def wrong_credentials() -> Rejected:
    """Make the rejection of a log-in, which does not tell what was wrong."""
    return Rejected.because(ProblemCode.WRONG_CREDENTIALS, "There is no account with this login and password.")
