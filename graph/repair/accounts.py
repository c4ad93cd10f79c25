"""Accounts: a login leads to a profile, and the profile names the login."""

from collections.abc import AsyncIterator, Sequence

from graph import keys
from graph.log.events import UserCreated
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Scope, pattern
from graph.store.commands import script


class Logins:
    """From every login that is an account to its profile. Three commands a login, two round trips for 500."""

    part = Part.ACCOUNTS
    counts = keys.login("*")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[str]]:
        """Go through all logins."""
        return self._scope.names(keys.login("*"))

    async def compare(self, logins: Sequence[str]) -> list[Difference[str]]:
        """Find the profiles that lack something. A profile that names another login is found from its own side."""
        holders = await self._scope.ask([("HGET", keys.login(login), "user") for login in logins])
        accounts = {
            login: int(user)
            for login, user in zip(logins, holders, strict=True)
            if user and int(user) <= self._scope.watermark
        }
        profiles = await self._scope.ask([("HMGET", keys.user(u), "id", "login", "name") for u in accounts.values()])
        found = []
        for (login, user), (id_, named, name) in zip(accounts.items(), profiles, strict=True):
            if (id_ != str(user) or name is None or named is None) and named in (None, login):
                found.append(await self._incomplete(login, user))
        return found

    async def _incomplete(self, login: str, user: int) -> Difference[str]:
        event = await self._scope.log.get(user)
        body = event.body if event is not None else None
        what = f"login {login} is user {user}, whose profile lacks its id, login or name"
        if not isinstance(body, UserCreated) or body.login != login:
            return Difference(Kind.PROFILE, login, f"{what}; the log no longer holds the sign-up")

        async def cure() -> bool:
            fields = ("id", user, "login", login, "name", body.name, "bio", body.bio)
            await self._scope.ask([script("repair_profile").call([keys.user(user)], user, *fields)])
            return True

        return Difference(Kind.PROFILE, login, what, cure)


class Profiles:
    """From every profile to the login it names. Two commands a profile, two round trips for 500."""

    part = Part.ACCOUNTS
    counts = pattern(keys.user)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def subjects(self) -> AsyncIterator[list[int]]:
        """Go through all profiles."""
        return self._scope.owners(keys.user)

    async def compare(self, users: Sequence[int]) -> list[Difference[int]]:
        """Find the profiles whose login belongs to nobody or to another one."""
        named = await self._scope.ask([("HGET", keys.user(user), "login") for user in users])
        logins = {
            user: str(login)
            for user, login in zip(users, named, strict=True)
            if login is not None and user <= self._scope.watermark
        }
        holders = await self._scope.ask([("HGET", keys.login(login), "user") for login in logins.values()])
        return [
            Difference(Kind.LOGIN, user, f"user {user} names login {login}, which is {whose(holder)}")
            for (user, login), holder in zip(logins.items(), holders, strict=True)
            if holder != str(user)
        ]


def whose(holder: str | None) -> str:
    """Say whose a login is."""
    return "nobody's" if holder is None else f"that of user {holder}"
