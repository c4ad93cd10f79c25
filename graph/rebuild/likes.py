"""Rebuilds the sets of likes of posts and of users, and the counts of likes, from the live likes in the archive.

The archive has one live row for each like, so a like can be loaded without other likes of the same user and post. The
rows are read in the order of their numbers, a page at a time, and a set that outgrows the hot window is cut as it is
loaded.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import orjson

from graph import keys
from graph.archive.rows import LIKE, POST, UNLIKE, EventRow
from graph.projections.likes import like_keys
from graph.store.commands import script
from graph.store.store import Store
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

OWNERS_PER_SCRIPT = 500


class LikeLoading:
    """Loads likes into an empty store, `rows` rows at a time."""

    def __init__(self, store: Store, archive: "Archive", tuning: Tuning, *, rows: int) -> None:
        self._store = store
        self._archive = archive
        self._kept = tuning.hot_posts
        self._largest = tuning.hot_posts + tuning.hot_slack
        self._rows = rows

    async def load(self, tombstones_after: int) -> int:
        """Load all likes, then the tombstones with numbers above `tombstones_after`, and return the number of likes.

        Three queries and two round trips for every page of rows.
        """
        likes = 0
        for kind, reached in ((LIKE, 0), (UNLIKE, tombstones_after)):
            after = reached
            while page := await self._archive.of_kind(kind, after, self._rows):
                await self._load_page(page)
                after = page[-1].number
                likes += len(page) if kind == LIKE else 0
        return likes

    async def _load_page(self, page: Sequence[EventRow]) -> None:
        """Load likes or unlikes. Likes of posts that are not live are added to the sets of users only."""
        changes = [
            (row.subject, row.actor, row.number if row.kind == LIKE else -row.number)
            for row in page
            if row.subject is not None
        ]
        kinds = await self._archive.kinds_of({post for post, _, _ in changes})
        of_posts = ((post, user, number) for post, user, number in changes if kinds.get(post) == POST)
        await self._send(like_keys, of_posts)
        await self._send(liked_keys, ((user, post, number) for post, user, number in changes))

    async def _send(self, names: Callable[[int], list[str]], changes: Iterable[tuple[int, int, int]]) -> None:
        words: defaultdict[int, list[str]] = defaultdict(list)
        for owner, member, number in changes:
            words[owner] += (str(member), str(number))
        commands = []
        for group in self._store.together(words.items(), lambda owner: names(owner[0])[0], OWNERS_PER_SCRIPT):
            all_names = [name for owner, _ in group for name in names(owner)]
            limits = (len(all_names) // len(group), self._largest, self._kept)
            commands.append(script("load_likes").call(all_names, *limits, orjson.dumps([part for _, part in group])))
        await self._store.send(commands)


def liked_keys(user: int) -> list[str]:
    """Return the keys of the posts that a user likes."""
    return [keys.liked(user), keys.gone(keys.liked(user))]
