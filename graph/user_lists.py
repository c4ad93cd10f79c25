"""Pages of lists of users that are kept as sorted sets: followers and followed users, and a viewer's own lists.

Users hidden from the viewer are left out, and a page reads on until it is full. So that a viewer with very many blocks
cannot make a page read a whole list, it looks at 2,000 entries at most. It may then be short, even empty, with more
entries to come and a cursor that continues.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from graph.model import Follow, Page, new_follow
from graph.paging import Window
from graph.store.store import Store
from graph.visibility import View

MOST_SCANNED = 2000
MOST_AT_ONCE = 500


async def user_pages(
    store: Store, view: View, key: Callable[[int], str], owners: Sequence[int], window: Window
) -> list[Page[Follow]]:
    """Return a page of the sorted set `key(owner)` of each owner, without the users hidden from the view.

    The list of an owner who is hidden is empty. One round trip if nothing is hidden, shared with the first reads of the
    view; up to four for each page that lacks entries.
    """
    view.begin(owners)
    pending = dict.fromkeys(owners, replace(window, count=window.count + 1))
    found: dict[int, list[Follow]] = {owner: [] for owner in owners}
    reached: dict[int, int] = {}
    scanned = 0
    while pending:
        rows = await read_rows(store, key, pending)
        hidden = await view.hidden({*pending, *(row.user for some in rows for row in some)})
        scanned += max(map(len, rows), default=0)
        rest: dict[int, Window] = {}
        for (owner, read), some in zip(pending.items(), rows, strict=True):
            if owner in hidden:
                continue
            found[owner] += [row for row in some if row.user not in hidden] if hidden else some
            if len(found[owner]) <= window.count and len(some) == read.count:
                if scanned < MOST_SCANNED:
                    rest[owner] = beyond(read, some[-1].number)
                else:
                    reached[owner] = some[-1].number
        pending = rest
    return [window.page(found[owner], reached.get(owner)) for owner in owners]


async def read_rows(store: Store, key: Callable[[int], str], windows: dict[int, Window]) -> list[list[Follow]]:
    """Return the entries of each owner's window, in paging direction. One round trip."""
    commands = []
    for owner, window in windows.items():
        low, high = f"({window.low}", f"({window.high}"
        bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
        commands.append(("ZRANGE", key(owner), *bounds, "LIMIT", 0, window.count, "WITHSCORES"))
    replies = await store.read(commands)
    return [[new_follow((int(user), int(score))) for user, score in rows] for rows in replies]


def beyond(read: Window, last: int) -> Window:
    """Return the larger window that follows the entry `last`, in paging direction."""
    following = replace(read, count=MOST_AT_ONCE)
    return replace(following, high=last) if read.forward else replace(following, low=last)
