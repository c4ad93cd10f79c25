"""Known followers: the followers of a user whom the viewer also follows.

They are not stored as a set. The users whom the viewer follows (a limited number) are looked up among the user's
followers; if the user has fewer followers than that, all of them are read instead.
"""

from collections.abc import Sequence
from typing import NamedTuple

from graph import keys
from graph.archive.usage import ScanLimit, affordable
from graph.model import Follow, Page, new_follow
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import View


class KnownFollowers(NamedTuple):
    """A page of a user's followers whom the viewer also follows, and the total number of these followers."""

    page: Page[Follow]
    total: int

    def cut(self, window: Window) -> "KnownFollowers":
        """Return the part of the page in a narrower window with the same bounds and direction."""
        return KnownFollowers(window.cut(self.page), self.total)


async def known_followers(
    store: Store, viewer: int, users: Sequence[int], window: Window, view: View
) -> list[KnownFollowers | ScanLimit]:
    """Return a page of each user's followers whom the viewer also follows, newest followers first.

    Two round trips; one if the viewer does not follow any users. O(f log f) for each user, where f is the number of
    users the viewer follows or of the user's followers, whichever is smaller. This cost is charged to the operation;
    users for whom its budget is too small get ScanLimit. `view` is the viewer's view: users hidden from it get an empty
    page.
    """
    view.begin(users)
    followed, *sizes = await store.read(
        [("ZRANGE", keys.following(viewer), 0, -1), *(("ZCARD", keys.followers(user)) for user in users)]
    )
    if not followed:
        return [KnownFollowers(window.page([]), 0) for _ in users]
    among = users[: affordable([min(size, len(followed)) for size in sizes])]
    replies = await store.read([_compared(user, size, followed) for user, size in zip(among, sizes, strict=False)])
    numbers = [
        reply if size > len(followed) else list(map(dict(reply).get, followed))
        for reply, size in zip(replies, sizes, strict=False)
    ]
    hidden = await view.hidden(users)
    if suspended := await view.suspended([*map(int, followed)]):
        shown = [int(user) not in suspended for user in followed]
        numbers = [
            [number if is_shown else None for number, is_shown in zip(row, shown, strict=True)] for row in numbers
        ]
    nobody: list[float | None] = [None] * len(followed)
    pages = [
        page_of(followed, nobody if user in hidden else of_user, window)
        for user, of_user in zip(among, numbers, strict=True)
    ]
    return [*pages, *(ScanLimit() for _ in users[len(among) :])]


def _compared(user: int, followers: int, followed: Sequence[str]) -> Command:
    """Return the command that finds followed users among a user's followers, or reads all followers if fewer."""
    if followers > len(followed):
        return ("ZMSCORE", keys.followers(user), *followed)
    return ("ZRANGE", keys.followers(user), 0, -1, "WITHSCORES")


def page_of(followed: Sequence[str], numbers: Sequence[float | None], window: Window) -> KnownFollowers:
    """Return the page of the followed users whose entry in `numbers`, the number of a Followed event, is not None."""
    follows = [(int(number), int(user)) for user, number in zip(followed, numbers, strict=True) if number is not None]
    found = sorted((each for each in follows if window.low < each[0] < window.high), reverse=window.forward)
    return KnownFollowers(
        window.page([new_follow((user, number)) for number, user in found[: window.count + 1]]), len(follows)
    )
