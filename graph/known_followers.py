"""The followers of a user whom the viewer follows.

No set holds them: the viewer's list of followed users, which has a limit, is looked up in the user's followers; or the
whole list of followers is read, if that is shorter.
"""

from collections.abc import Sequence
from typing import NamedTuple

from graph import keys
from graph.archive.usage import check_budget, count_items
from graph.model import Follow, Page, new_follow
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility import View


class KnownFollowers(NamedTuple):
    """A page of the followers of a user whom the viewer follows, and their total number."""

    page: Page[Follow]
    total: int

    def cut(self, window: Window) -> "KnownFollowers":
        """Return the part of the page in a narrower window with the same bounds and direction."""
        return KnownFollowers(window.cut(self.page), self.total)


async def known_followers(
    store: Store, viewer: int, users: Sequence[int], window: Window, view: View
) -> list[KnownFollowers]:
    """Return for each user a page of the followers whom the viewer follows, by the number of their follow.

    Two round trips; one if the viewer follows nobody. O(f log f) for each user, if the viewer follows f users or the
    user has f followers, whichever is less. `view` is the viewer's view: users hidden from it have none. The operation
    pays for the members that are compared. Raises ScanLimit if its budget is used up.
    """
    view.begin(users)
    followed, *sizes = await store.read(
        [("ZRANGE", keys.following(viewer), 0, -1), *(("ZCARD", keys.followers(user)) for user in users)]
    )
    if not followed:
        return [KnownFollowers(window.page([]), 0) for _ in users]
    check_budget()
    count_items(sum(min(size, len(followed)) for size in sizes))
    commands: list[Command] = [
        ("ZMSCORE", keys.followers(user), *followed)
        if size > len(followed)
        else ("ZRANGE", keys.followers(user), 0, -1, "WITHSCORES")
        for user, size in zip(users, sizes, strict=True)
    ]
    replies = await store.read(commands)
    numbers = [
        reply if size > len(followed) else list(map(dict(reply).get, followed))
        for reply, size in zip(replies, sizes, strict=True)
    ]
    hidden = await view.hidden(users)
    if suspended := await view.suspended([*map(int, followed)]):
        shown = [int(user) not in suspended for user in followed]
        numbers = [
            [number if is_shown else None for number, is_shown in zip(row, shown, strict=True)] for row in numbers
        ]
    nobody: list[float | None] = [None] * len(followed)
    return [
        page_of(followed, nobody if user in hidden else of_user, window)
        for user, of_user in zip(users, numbers, strict=True)
    ]


def page_of(followed: Sequence[str], numbers: Sequence[float | None], window: Window) -> KnownFollowers:
    """Return the page of those followed users who have a number, the number of their follow."""
    follows = [(int(number), int(user)) for user, number in zip(followed, numbers, strict=True) if number is not None]
    found = sorted((each for each in follows if window.low < each[0] < window.high), reverse=window.forward)
    return KnownFollowers(
        window.page([new_follow((user, number)) for number, user in found[: window.count + 1]]), len(follows)
    )
