"""The users whom a text mentions, as of its publication.

They are stored with the post, because a login that no user has at that time is plain text, even if a user takes it
later. The login of a user whom the author blocks, or who blocks the author, is plain text too.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from graph.text.entities import Mention, entities_of
from graph.visibility.views import View


class Mentions:
    """Resolves mentions with `ids_of_logins`, which returns None for an unknown login."""

    def __init__(self, ids_of_logins: Callable[[Sequence[str]], Awaitable[list[int | None]]]) -> None:
        self._ids_of_logins = ids_of_logins

    async def resolve(self, view: View, text: str) -> tuple[int, ...]:
        """Return the users whom a text mentions, each once, in the order of their first mention.

        `view` is the author's view. Users who are hidden from the author, because of a block in either direction, are
        left out. No round trip if there are no mentions; otherwise one, shared with other reads of the same event-loop
        iterations.
        """
        logins = logins_in(text)
        if not logins:
            return ()
        view.begin()
        users = [user for user in await self._ids_of_logins(logins) if user is not None]
        hidden = await view.hidden(users)
        return tuple(user for user in users if user not in hidden)


def logins_in(text: str) -> list[str]:
    """Return the logins that a text mentions, each once, in the order of their first mention."""
    return list(dict.fromkeys(entity.login for entity in entities_of(text) if isinstance(entity, Mention)))


def users_of_logins(text: str, mentions: Sequence[int], logins: Mapping[int, str]) -> dict[str, int]:
    """Return the user of each login that counts as a mention in a published text.

    `mentions` are the users whom the text mentions, and `logins` has the logins of those who still exist. If there are
    as many other users as remaining logins in the text, those logins are assigned to them in order.
    """
    users = {login: user for user in mentions if (login := logins.get(user)) is not None}
    gone = [user for user in mentions if user not in logins]
    rest = [login for login in logins_in(text) if login not in users] if gone else []
    return users | dict(zip(rest, gone, strict=True)) if len(rest) == len(gone) else users
