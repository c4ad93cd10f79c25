"""Comparison of deleted users: tombstones of profiles, logins, their reservations, and the notes of deletions."""

from collections.abc import Iterator, Mapping

from graph import keys
from graph.fold.content import Account
from graph.log.account_events import login_hash
from graph.projections.accounts import free_login
from graph.projections.deletions import erase
from graph.repair import defects
from graph.repair.report import Difference
from graph.repair.scope import Scope, number, set_fields
from graph.store.commands import Command, script

Fields = Mapping[str, str]


class DeletedUsers:
    """Compares the users who are deleted in the archive or in the store. Three round trips for 1,000 users."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def compare(self, accounts: Mapping[int, Account], profiles: Mapping[int, Fields]) -> list[Difference]:
        """Return the differences in users, given their accounts in the archive and their profiles in the store."""
        users = [user for user in accounts if accounts[user].deleted or "deleted" in profiles[user]]
        if not users:
            return []
        found = [each for user in users for each in self._profile(user, accounts[user], profiles[user])]
        found += await self._logins({user: accounts[user] for user in users}, profiles)
        return found + await self._notes({user: accounts[user] for user in users})

    def _profile(self, user: int, account: Account, held: Fields) -> Iterator[Difference]:
        """Yield a difference if the tombstone differs. A profile without a tombstone is never newer than the archive.

        If an erased user's tombstone was lost, the floors of the user's sets may be lost too, and are restored.
        """
        wanted = {"deleted": str(account.deleted)} if account.deleted else {}
        actual = held if account.deleted else {name: held[name] for name in ("deleted",) if name in held}
        if actual != wanted:
            text = f"user {user}: is {'' if account.deleted else 'not '}deleted"
            floors = [erase(account.erased, user)] if account.erased else []
            correction = [set_fields(keys.user(user), actual, wanted), *floors]
            yield Difference(defects.PROFILE_WRONG, user, "deleted", text, correction)

    async def _logins(self, accounts: Mapping[int, Account], profiles: Mapping[int, Fields]) -> list[Difference]:
        """Return the differences for logins that deleted users still have, and for missing or wrong reservations."""
        logins = {user: account.login or profiles[user].get("login") for user, account in accounts.items()}
        hashes = {user: account.login_hash or login_hash(logins[user] or "") for user, account in accounts.items()}
        owners = await self._scope.send([("HGET", keys.login(login or ""), "user") for login in logins.values()])
        held = await self._scope.send([("GET", keys.reserved(hash_)) for hash_ in hashes.values()])
        found = []
        for (user, account), owner, reserved in zip(accounts.items(), owners, held, strict=True):
            login, name = logins[user], keys.reserved(hashes[user])
            if account.deleted and login is not None and owner == str(user):
                text = f"login {login} of user {user}, who is deleted"
                found.append(Difference(defects.LOGIN_WRONG, user, "login", text, [free_login(login, user)]))
            if number(reserved) != account.deleted and number(reserved) <= self._scope.up_to:
                text = f"user {user}: the reservation of the login is {reserved or 'missing'}, not {account.deleted}"
                correction: Command = ("DEL", name)
                if account.deleted:
                    correction = script("set").call([name], account.deleted, 0)
                found.append(Difference(defects.LOGIN_WRONG, user, "reservation", text, [correction]))
        return found

    async def _notes(self, accounts: Mapping[int, Account]) -> list[Difference]:
        """Return the differences in the notes of deletions, in the log's slot. Skip notes newer than the archive."""
        noted, scores = await self._scope.send(
            [("HMGET", keys.DELETED, *accounts), ("ZMSCORE", keys.ERASING, *accounts)]
        )
        found = []
        for (user, account), held, score in zip(accounts.items(), noted, scores, strict=True):
            wanted = -account.erased or account.deleted
            erasing = 0 if account.erased else account.deleted
            if (number(held), int(score or 0)) == (wanted, erasing) or abs(number(held)) > self._scope.up_to:
                continue
            text = f"user {user}: the record of the deletion is {held or 'missing'}, not {wanted}"
            fields = [{str(user): str(each)} if each else {} for each in (number(held), wanted)]
            erase = ("ZADD", keys.ERASING, erasing, user) if erasing else ("ZREM", keys.ERASING, user)
            found.append(
                Difference(defects.PROFILE_WRONG, user, "deletion", text, [set_fields(keys.DELETED, *fields), erase])
            )
        return found
