"""The projection of likes: two versioned sets, `likes` of the post and `liked` of the user, and the count of likes.

The oldest members of both sets are only in the archive, up to a floor (`graph.archiver.like_windows`). The store keeps
the number of a post's archived likes. A user who is neither in a post's set nor among its tombstones may have an
archived like. The archive then knows whether the user liked the post as of the floor, and the script counts the like at
most once, because it checks the floor again (`tests/properties/likes_explorer.py` explores this rule).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import orjson

from graph import keys
from graph.binding import Binding
from graph.chunks import chunks
from graph.errors import ArchiveUnavailable, StoreUnavailable
from graph.log.events import Liked, Unliked
from graph.store.batches import send_in_batches
from graph.store.commands import Command, script
from graph.store.store import Store

Change: TypeAlias = tuple[int, int, int]
"""A post, a user, and the number of the event, negative for an unlike."""

Asked: TypeAlias = dict[tuple[int, int], int]
"""By post and user, the floor as of which the archive must say whether the user liked the post."""

OWNERS_PER_SCRIPT = 500
CHANGES_PER_OWNER = 500
ATTEMPTS = 10


class LikesUnknown(StoreUnavailable):
    """It is unknown whether a like is among the archived ones, so it cannot be counted now."""


class LikeProjection:
    """Projects Liked and Unliked events."""

    def __init__(self, store: Store, binding: Binding) -> None:
        self._store = store
        self._binding = binding

    async def change(
        self, events: Sequence[tuple[int, Liked | Unliked]], trim_up_to: int, notices: Sequence[Command] = ()
    ) -> None:
        """Add and remove likes. Tombstones with numbers up to `trim_up_to` are trimmed.

        One round trip, which also sends the notices of the likes. If users may be among the archived likes of a post,
        one query for each such post and a second round trip, and again if a floor has changed meanwhile. Raises
        LikesUnknown if the archive does not answer, or a floor changes during every attempt.
        """
        changes = [(body.post, body.user, number if isinstance(body, Liked) else -number) for number, body in events]
        if not changes:
            return
        groups, commands = self._of_posts(changes, {}, trim_up_to)
        replies = await send_in_batches(self._store, [*commands, *self._of_users(changes, trim_up_to), *notices])
        asked = users_to_ask_about(groups, replies)
        for _ in range(ATTEMPTS):
            if not asked:
                return
            answers = await self._ask(asked)
            left = [change for change in changes if change[:2] in asked]
            groups, commands = self._of_posts(left, answers, trim_up_to)
            asked = users_to_ask_about(groups, await send_in_batches(self._store, commands))
        raise LikesUnknown("the ranges of archived likes changed during every attempt")

    def _of_posts(
        self, changes: Sequence[Change], answers: dict[tuple[int, int], tuple[int, bool]], trim_up_to: int
    ) -> tuple[list[list[int]], list[Command]]:
        """Return the posts that each command concerns, and the commands, which change the sets of these posts."""
        words: defaultdict[int, list[str]] = defaultdict(list)
        for post, user, number in changes:
            floor, was_liked = answers.get((post, user), ("", False))
            words[post] += (str(user), str(number), str(floor), str(int(was_liked)))
        groups, commands = [], []
        owners = ((post, part) for post, all_ in words.items() for part in chunks(all_, 4 * CHANGES_PER_OWNER))
        for group in self._store.together(owners, lambda owner: keys.post(owner[0]), OWNERS_PER_SCRIPT):
            names = [name for post, _ in group for name in like_keys(post)]
            groups.append([post for post, _ in group])
            commands.append(script("change_likes").call(names, trim_up_to, orjson.dumps([part for _, part in group])))
        return groups, commands

    def _of_users(self, changes: Sequence[Change], trim_up_to: int) -> Iterable[Command]:
        """Yield the commands that change the sets of users."""
        words: defaultdict[int, list[str]] = defaultdict(list)
        for post, user, number in changes:
            words[user] += (str(post), str(number))
        owners = ((user, part) for user, all_ in words.items() for part in chunks(all_, 2 * CHANGES_PER_OWNER))
        for group in self._store.together(owners, lambda owner: keys.liked(owner[0]), OWNERS_PER_SCRIPT):
            names = [name for user, _ in group for name in (keys.liked(user), keys.gone(keys.liked(user)))]
            yield script("change_liked").call(names, trim_up_to, orjson.dumps([part for _, part in group]))

    async def _ask(self, asked: Asked) -> dict[tuple[int, int], tuple[int, bool]]:
        """Return, for each post and user, the floor and whether the user liked the post as of the floor."""
        by_floor: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for (post, user), floor in asked.items():
            by_floor[post, floor].append(user)
        reads = [(post, floor, users) for (post, floor), users in by_floor.items()]
        try:
            found = await (await self._binding.archive()).likers(reads)
        except ArchiveUnavailable as outage:
            raise LikesUnknown(f"the archive does not answer: {outage.reason}") from outage
        return {
            (post, user): (floor, user in likers)
            for (post, floor, users), likers in zip(reads, found, strict=True)
            for user in users
        }


def like_keys(post: int) -> list[str]:
    """Return the keys that a change to the likes of a post needs."""
    name = keys.likes(post)
    return [name, keys.gone(name), keys.cold_likes(post), keys.post(post)]


def users_to_ask_about(groups: Sequence[Sequence[int]], replies: Sequence[Sequence[Sequence[str]]]) -> Asked:
    """Return the posts and users to ask the archive about, with the floors, from the replies of `change_likes.lua`.

    One reply per group of posts; further replies (for the sets of users and the notices) are ignored.
    """
    return {
        (post, int(user)): int(floor)
        for group, reply in zip(groups, replies, strict=False)
        for post, asked in zip(group, reply, strict=True)
        if asked
        for floor in asked[:1]
        for user in asked[1:]
    }
