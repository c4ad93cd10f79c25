"""Comparison of accounts: profiles, permissions, logins, sessions that should have ended, and deleted users."""

import secrets
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from graph import keys
from graph.expected.event_folds import fold_event
from graph.expected.loading import ACCOUNT_KINDS
from graph.expected.stored import account_keys, login_fields
from graph.fold import content
from graph.fold.content import Account, Content
from graph.fold.values import Hash
from graph.log.account_events import UserDeleted
from graph.log.events import PROFILE_FIELDS, SessionsEnded
from graph.repair import defects
from graph.repair.deleted_users import DeletedUsers
from graph.repair.report import Difference
from graph.repair.scope import OWNERS_AT_ONCE, Comparison, number, set_fields

PROFILE = ("id", "login", *PROFILE_FIELDS)
LOGIN = ("secret", "nonce", "user", "secret:at")

Fields = Mapping[str, str]


class AccountComparison(Comparison):
    """Compares the profile, the login and the sessions of each user.

    Two queries and four round trips for 500 users, and three more round trips if some are deleted. Groups of users with
    more than 10,000 events are split.
    """

    part = defects.ACCOUNTS
    key = staticmethod(keys.user)

    async def subjects(self) -> AsyncIterator[list[int]]:
        """Yield all users, the ids of stored profiles that are not users, and deleted users. Some are yielded twice."""
        async for some in super().subjects():
            yield some
        after = 0
        while rows := await self.scope.archive.of_kind(UserDeleted.__name__, after, OWNERS_AT_ONCE):
            after = rows[-1].number
            yield [row.actor for row in rows if row.number <= self.scope.up_to]

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the differences in fields, suspensions, logins, sessions and deletions."""
        credentials = await self.scope.archive.credentials(subjects)
        secrets = {user: credential.hash for user, credential in credentials.items()}
        kinds = (*ACCOUNT_KINDS, SessionsEnded.__name__)
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.ACCOUNT, kinds, fold_event, secrets):
            profiles = await self.scope.send([("HGETALL", keys.user(user)) for user in users])
            sessions = await self.scope.send([("HKEYS", keys.sessions(user)) for user in users])
            hidden = await self.scope.send([("HGET", keys.SUSPENDED, str(user)) for user in users])
            accounts = {
                user: events.accounts.get(user, Account())
                for user, profile in zip(users, profiles, strict=True)
                if number(profile.get("deleted")) <= self.scope.up_to
            }
            for user, profile, live, suspended in zip(users, profiles, sessions, hidden, strict=True):
                if user not in accounts:  # deleted since
                    continue
                if not accounts[user].deleted:
                    found += self._profile(user, accounts[user], profile)
                found += self._suspension(user, accounts[user].suspended, suspended)
                for session in self._ended(events, user, profile, live):
                    end = ("HDEL", keys.sessions(user), session)  # ids of sessions are never used again
                    details = ("HDEL", keys.session_details(user), *keys.session_fields(session))
                    found.append(Difference(defects.SESSION_LIVE, user, session, f"user {user}", [end, details]))
            found += await self._logins({user: each for user, each in accounts.items() if not each.deleted})
            found += await DeletedUsers(self.scope).compare(accounts, dict(zip(users, profiles, strict=True)))
        return found

    def _profile(self, user: int, account: Account, held: Fields) -> Iterator[Difference]:
        """Yield the fields that differ and are not newer than the archive. Fields of later versions are ignored."""
        if account.login is None:
            if 0 < number(held.get("id:at")) <= self.scope.up_to:
                yield Difference(defects.ACCOUNT_UNKNOWN, user, "", f"user {user}, login {held.get('login')}")
            return
        expected = next(value for _, value in account_keys(user, account) if isinstance(value, Hash) and "id" in value)
        numbers = {"password", "suspended"} | {
            name for name in (*held, *expected) if name.startswith(keys.permission(""))
        }
        for name in (*PROFILE, *sorted(numbers)):
            version = name if name in numbers else f"{name}:at"
            wanted, actual = ({f: all_[f] for f in (name, version) if f in all_} for all_ in (expected, held))
            if wanted != actual and abs(number(held.get(version))) <= self.scope.up_to:
                text = f"user {user}: {name} is {held.get(name, 'missing')!r}, not {expected.get(name)!r}"
                correction = [set_fields(keys.user(user), actual, wanted)]
                yield Difference(defects.PROFILE_WRONG, user, name, text, correction)

    def _ended(self, events: Content, user: int, profile: Fields, live: Sequence[str]) -> list[str]:
        """Return the live sessions that should have ended: all of a suspended or deleted user, or those logged out."""
        account = events.accounts.get(user, Account())
        if account.deleted:
            return sorted(live)
        if account.suspended > 0 and abs(number(profile.get("suspended"))) <= self.scope.up_to:
            return sorted(live)
        return sorted(events.ended.get(user, set()).intersection(live))

    def _suspension(self, user: int, wanted: int, held: str | None) -> Iterator[Difference]:
        """Yield the user's entry in the hash of suspended users if it differs and is not newer than the archive."""
        if wanted != number(held) and abs(number(held)) <= self.scope.up_to:
            actual, expected = ({str(user): str(each)} if each else {} for each in (number(held), wanted))
            text = f"user {user}: the suspension is {held or 'missing'}, not {wanted}"
            version = ("SET", keys.SUSPENDED_VERSION, secrets.token_hex(8))
            yield Difference(
                defects.PROFILE_WRONG,
                user,
                "suspension",
                text,
                [set_fields(keys.SUSPENDED, actual, expected), version],
            )

    async def _logins(self, all_: Mapping[int, Account]) -> list[Difference]:
        """Return the differences in logins. Their descriptions do not include password hashes."""
        found = []
        accounts = {user: account for user, account in all_.items() if account.login is not None}
        rows = await self.scope.send([("HMGET", keys.login(a.login or ""), *LOGIN) for a in accounts.values()])
        for (user, account), row in zip(accounts.items(), rows, strict=True):
            held = {name: text for name, text in zip(LOGIN, row, strict=True) if text is not None}
            wanted = login_fields(user, account)
            newest = max(number(held.get("user")), number(held.get("secret:at")))
            if held != wanted and newest <= self.scope.up_to:
                text = f"login {account.login} of user {user}, now of user {held.get('user', 'none')}"
                correction = [set_fields(keys.login(account.login or ""), held, wanted)]
                found.append(Difference(defects.LOGIN_WRONG, user, "login", text, correction))
        return found
