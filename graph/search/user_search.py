"""Search for users by login and name, with the index in the archive.

A user matches if each word of the text is the beginning of the login or of a word of the name. In scripts without
spaces, the name must contain the text. The user whose login is exactly `text` comes first, followed by the other
matches, newest first.
"""

from collections.abc import Sequence

from graph.accounts.users import Users
from graph.archive.name_codes import NameQuery, name_query
from graph.binding import Binding
from graph.errors import BadFilter
from graph.model import MAX_NUMBER, Follow, Page, User
from graph.pages.scanning import MOST_SCANNED, scanned_page
from graph.paging import Window
from graph.text.validation import MAX_NAME
from graph.visibility.views import View


def checked_query(text: str) -> NameQuery:
    """Return the query in a client's search text. Raises BadFilter."""
    if len(text) > MAX_NAME:
        raise BadFilter(f"'text' has {len(text)} characters; the limit is {MAX_NAME}. Search for fewer words.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadFilter("'text' contains a lone surrogate, which is not valid Unicode.") from None
    query = name_query(text)
    if not query.words and not query.phrases:
        raise BadFilter("'text' has no letter or digit. Search for a login, or for words of a name.")
    return query


class UserSearches:
    """Searches for users. A page scans at most `scanned` users."""

    def __init__(self, binding: Binding, users: Users, *, scanned: int = MOST_SCANNED) -> None:
        self._binding = binding
        self._users = users
        self._scan_limit = scanned

    async def page(self, view: View, text: str, window: Window) -> tuple[Page[Follow], dict[int, User]]:
        """Return a page of the users who match a text, without those hidden from the view, and their profiles by id.

        The number of an entry is the user's id, or the highest possible number for the user with exactly this login. A
        page scans at most 2,000 users. After that it may be short, even empty, although there are more users. One query
        and one round trip, up to 16 of each if many of the users with these words do not match or are hidden; one more
        round trip for a login that is not in the cache of logins. Raises BadFilter, ArchiveUnavailable, and ScanLimit
        if the operation has used up its budget.
        """
        query = checked_query(text)
        codes = query.codes()
        archive = await self._binding.archive()
        [exact] = await self._users.ids_of_logins([text.strip().removeprefix("@")])
        profiles: dict[int, User] = {}

        async def read(rest: Window, turn: int) -> tuple[Sequence[int], Window | None]:
            users, following = await archive.named(codes, rest)
            found = [user for user in users if user != exact]
            if exact is not None and window.high > MAX_NUMBER:
                if window.forward and turn == 0:
                    found.insert(0, exact)
                elif not window.forward and following is None:
                    found.append(exact)
            return found, following

        async def show(users: Sequence[int]) -> list[Follow]:
            if not users:
                return []
            view.begin(users)
            loaded = dict(zip(users, await self._users.get_many(users), strict=True))
            hidden = await view.hidden(users)
            shown = {id_: user for id_, user in loaded.items() if user is not None and id_ not in hidden}
            profiles.update(shown)
            return [
                Follow(id_, MAX_NUMBER if id_ == exact else id_)
                for id_, user in shown.items()
                if id_ == exact or query.matches(user.login, user.name)
            ]

        return await scanned_page(window, read, show, limit=self._scan_limit), profiles
