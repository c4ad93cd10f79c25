"""Comparison of accounts: profiles, permissions, logins, and sessions that have ended."""

from collections.abc import Iterator, Mapping, Sequence

from graph import keys
from graph.fold import content
from graph.fold.content import Account, Content
from graph.fold.loading import ACCOUNT_KINDS
from graph.fold.stored import Hash, account_keys, login_fields
from graph.log.events import PROFILE_FIELDS, SessionsEnded
from graph.repair.report import Difference, Kind, Part
from graph.repair.scope import Comparison, number, set_fields

PROFILE = ("id", "login", *PROFILE_FIELDS)
LOGIN = ("secret", "nonce", "user", "secret:at")

Fields = Mapping[str, str]


class Accounts(Comparison):
    """Compares the profile, the login and the sessions of each user.

    Two queries and three round trips for 500 users. They are split if they have more than 10,000 events.
    """

    part = Part.ACCOUNTS
    key = staticmethod(keys.user)

    async def compare(self, subjects: Sequence[int]) -> list[Difference]:
        """Return the fields, logins and sessions that are not as the events say."""
        credentials = await self.scope.archive.credentials(subjects)
        secrets = {user: credential.hash for user, credential in credentials.items()}
        kinds = (*ACCOUNT_KINDS, SessionsEnded.__name__)
        found: list[Difference] = []
        async for users, events in self.scope.folded(subjects, content.Part.ACCOUNT, kinds, secrets):
            profiles = await self.scope.send([("HGETALL", keys.user(user)) for user in users])
            sessions = await self.scope.send([("HKEYS", keys.sessions(user)) for user in users])
            for user, profile, live in zip(users, profiles, sessions, strict=True):
                found += self._profile(user, events.accounts.get(user, Account()), profile)
                for session in sorted(events.ended.get(user, set()).intersection(live)):
                    end = ("HDEL", keys.sessions(user), session)  # ids of sessions are never used again
                    details = ("HDEL", keys.session_details(user), *keys.session_fields(session))
                    found.append(Difference(Kind.SESSION_LIVE, user, session, f"user {user}", [end, details]))
            found += await self._logins(events)
        return found

    def _profile(self, user: int, account: Account, held: Fields) -> Iterator[Difference]:
        """Yield the fields that differ and are not newer than the archive. Fields of later versions are ignored."""
        if account.login is None:
            if 0 < number(held.get("id:at")) <= self.scope.upto:
                yield Difference(Kind.ACCOUNT_UNKNOWN, user, "", f"user {user}, login {held.get('login')}")
            return
        expected = next(value for _, value in account_keys(user, account) if isinstance(value, Hash) and "id" in value)
        numbers = {"password"} | {name for name in (*held, *expected) if name.startswith(keys.permission(""))}
        for name in (*PROFILE, *sorted(numbers)):
            version = name if name in numbers else f"{name}:at"
            wanted, actual = ({f: all_[f] for f in (name, version) if f in all_} for all_ in (expected, held))
            if wanted != actual and abs(number(held.get(version))) <= self.scope.upto:
                text = f"user {user}: {name} is {held.get(name, 'missing')!r}, not {expected.get(name)!r}"
                correction = [set_fields(keys.user(user), actual, wanted)]
                yield Difference(Kind.PROFILE_WRONG, user, name, text, correction)

    async def _logins(self, events: Content) -> list[Difference]:
        """Return the logins that differ, without their password hashes."""
        found = []
        accounts = {user: account for user, account in events.accounts.items() if account.login is not None}
        rows = await self.scope.send([("HMGET", keys.login(a.login or ""), *LOGIN) for a in accounts.values()])
        for (user, account), row in zip(accounts.items(), rows, strict=True):
            held = {name: text for name, text in zip(LOGIN, row, strict=True) if text is not None}
            wanted = login_fields(user, account)
            newest = max(number(held.get("user")), number(held.get("secret:at")))
            if held != wanted and newest <= self.scope.upto:
                text = f"login {account.login} of user {user}, now of user {held.get('user', 'none')}"
                correction = [set_fields(keys.login(account.login or ""), held, wanted)]
                found.append(Difference(Kind.LOGIN_WRONG, user, "login", text, correction))
        return found
