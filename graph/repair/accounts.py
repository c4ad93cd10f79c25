"""Comparison of accounts: each login names a user, and the user's profile names the login."""

from collections.abc import AsyncIterator, Sequence

from graph import keys
from graph.log.events import UserCreated
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Scope, pattern
from graph.store.commands import script


class Logins:
    """Compares each login with its profile. Three commands per login, 2 round trips per 500 logins."""

    part = Part.ACCOUNTS
    key_pattern = keys.login("*")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[str]]:
        """Yield all logins."""
        return self._scope.names(keys.login("*"))

    async def compare(self, logins: Sequence[str]) -> list[Difference[str]]:
        """Return the incomplete profiles. `Profiles` finds profiles that name another login."""
        holders = await self._scope.send([("HGET", keys.login(login), "user") for login in logins])
        accounts = {
            login: int(user)
            for login, user in zip(logins, holders, strict=True)
            if user and int(user) <= self._scope.watermark
        }
        profiles = await self._scope.send([("HMGET", keys.user(u), "id", "login", "name") for u in accounts.values()])
        found = []
        for (login, user), (id_, named, name) in zip(accounts.items(), profiles, strict=True):
            if (id_ != str(user) or name is None or named is None) and named in (None, login):
                found.append(await self._incomplete(login, user))
        return found

    async def _incomplete(self, login: str, user: int) -> Difference[str]:
        event = await self._scope.log.get(user)
        body = event.body if event is not None else None
        text = f"login {login}: the profile of user {user} has no id, login or name"
        if not isinstance(body, UserCreated) or body.login != login:
            return Difference(Kind.PROFILE_INCOMPLETE, login, f"{text}; the log no longer has the sign-up event")

        async def correct() -> bool:
            fields = ("id", user, "login", login, "name", body.name, "bio", body.bio)
            await self._scope.send([script("repair_profile").call([keys.user(user)], user, *fields)])
            return True

        return Difference(Kind.PROFILE_INCOMPLETE, login, text, correct)


class Profiles:
    """Compares each profile with its login. Two commands per profile, 2 round trips per 500 profiles."""

    part = Part.ACCOUNTS
    key_pattern = pattern(keys.user)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[int]]:
        """Yield all profiles."""
        return self._scope.owners(keys.user)

    async def compare(self, users: Sequence[int]) -> list[Difference[int]]:
        """Return the profiles whose login does not exist or belongs to another user."""
        named = await self._scope.send([("HGET", keys.user(user), "login") for user in users])
        logins = {
            user: str(login)
            for user, login in zip(users, named, strict=True)
            if login is not None and user <= self._scope.watermark
        }
        holders = await self._scope.send([("HGET", keys.login(login), "user") for login in logins.values()])
        return [
            Difference(Kind.LOGIN_MISMATCH, user, f"user {user}: login {login} {_owner(holder)}")
            for (user, login), holder in zip(logins.items(), holders, strict=True)
            if holder != str(user)
        ]


def _owner(holder: str | None) -> str:
    return "does not exist" if holder is None else f"belongs to user {holder}"
