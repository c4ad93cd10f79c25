"""Pages of users in sorted sets: followers, followed users, and the users whom a viewer mutes or blocks.

Users hidden from the viewer are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from graph.model import Follow, Page, new_follow
from graph.pages.full_pages import full_pages
from graph.paging import Window
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import View


async def user_pages(
    store: Store, view: View, key: Callable[[int], str], owners: Sequence[int], window: Window
) -> list[Page[Follow]]:
    """Return a page of the sorted set `key(owner)` of each owner, without the users hidden from the view.

    The list of an owner who is hidden is empty. One round trip if nothing is hidden, shared with the first reads of the
    view; up to four more for pages that are not full yet (`graph.pages.full_pages`).
    """

    async def show(owners: Sequence[int], lists: Sequence[Sequence[Follow]]) -> list[Sequence[Follow] | None]:
        hidden = await view.hidden({*owners, *(row.user for some in lists for row in some)})
        return [
            None if owner in hidden else [row for row in some if row.user not in hidden] if hidden else some
            for owner, some in zip(owners, lists, strict=True)
        ]

    view.begin(owners)
    return await full_pages(owners, window, partial(read_members, store, key), show)


async def read_members(store: Store, key: Callable[[int], str], windows: Mapping[int, Window]) -> list[list[Follow]]:
    """Return the members of each owner's set in a window, in paging direction. One round trip."""
    commands = [range_of(key(owner), window, window.count) for owner, window in windows.items()]
    replies = await store.read(commands)
    return [[new_follow((int(member), int(score))) for member, score in rows] for rows in replies]


def range_of(key: str, window: Window, limit: int) -> Command:
    """Return the command that reads the first `limit` members of a window with their scores."""
    low, high = f"({window.low}", f"({window.high}"
    bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
    return ("ZRANGE", key, *bounds, "LIMIT", 0, limit, "WITHSCORES")
