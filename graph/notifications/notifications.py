"""The notifications of users: pages, the number of unread ones, and marking them as read.

A user's list holds groups of notifications, each with the number of its newest event. The users who act in a group are
read from the sets of followers, likes and reposts, and from the posts. So undoing an action does not change the list:
groups without users are left out. Groups whose post is deleted or hidden, or in which only muted or blocked users act,
are left out, too.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from graph import keys
from graph.archive.usage import count_items
from graph.commit import Commit
from graph.log.events import NotificationsRead
from graph.log.notification_groups import MAX_ACTORS, TYPES, Group, Notification, NotificationKind, parse_member
from graph.model import MAX_NUMBER, Page, Post
from graph.notifications.actors import CROWDS, NOBODY, Actors
from graph.paging import Window
from graph.posts.posts import Posts
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.visibility.views import View

MAX_UNREAD = 100
"""Unread notifications are counted up to one more than this number."""
MIN_WINDOW = 20
"""The minimum number of groups that are read at once after some groups were left out."""
STEPS_PER_GROUP = 7
"""The cost of checking one unread group, in items (`graph.archive.usage`)."""
MAX_WINDOW = 1000
"""The maximum number of groups that are read at once after some groups were left out."""
WHOLE_LIST = MAX_WINDOW + 1
"""The number of groups to read at once to find those of some kinds: more than a list usually holds."""
LIKE = NotificationKind.LIKE


class Notifications:
    """The notifications of users."""

    def __init__(self, store: Store, commit: Commit, posts: Posts) -> None:
        self._store = store
        self._commit = commit
        self._posts = posts
        self._actors = Actors(store, posts)

    async def page(
        self, view: View, window: Window, kinds: frozenset[NotificationKind] | None = None
    ) -> Page[Notification]:
        """Return a page of the viewer's notifications, newest first, limited to `kinds` if they are given.

        Two round trips, one more for groups of several reposts, and the same again each time that groups are left out.
        One query of the archive if the page has archived posts, and up to two for archived reposts. With `kinds`, the
        rest of the list is read at once, and charged to the operation. Raises ArchiveUnavailable.
        """
        view.begin()
        found: list[Notification] = []
        rest, further = replace(window, count=window.count + 1), 0
        while True:
            read_to, groups, last = await self._slice(view, rest, kinds)
            found += await self._shown(view, groups, read_to)
            if len(found) > window.count or last is None:
                return window.page(found)
            further = next_size(further, window.count + 1 - len(found))
            following = replace(rest, count=further)
            rest = replace(following, high=last) if rest.forward else replace(following, low=last)

    async def _slice(
        self, view: View, window: Window, kinds: frozenset[NotificationKind] | None
    ) -> tuple[int, dict[Group, int], int | None]:
        """Return how far the viewer has read, and at most `window.count` groups with their numbers. One round trip.

        The third value is the number after which the list continues; None at its end.
        """
        viewer, size = viewer_of(view), window.count if kinds is None else WHOLE_LIST
        low, high = f"({window.low}", f"({window.high}"
        bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
        page: Command = ("ZRANGE", keys.notifications(viewer), *bounds, "LIMIT", 0, size, "WITHSCORES")
        read_to, rows = await self._store.read([("GET", keys.notifications_read(viewer)), page])
        groups = groups_of(rows)
        if kinds is not None:
            count_items(len(rows))
            groups = {group: number for group, number in groups.items() if group.kind in kinds}
        if len(groups) > window.count:
            groups = dict(islice(groups.items(), window.count))
            return int(read_to or 0), groups, next(reversed(groups.values()))
        return int(read_to or 0), groups, int(rows[-1][1]) if rows and len(rows) == size else None

    async def get_many(self, view: View, groups: Sequence[Group]) -> list[Notification | None]:
        """Return notifications of the viewer by group; None for groups that are not in the list or are left out.

        Two round trips, one more for groups of several reposts, and queries of the archive for archived posts and
        reposts. Raises ArchiveUnavailable.
        """
        viewer, members = viewer_of(view), [group.member for group in groups]
        if not members:
            return []
        read_to, scores = await self._store.read(
            [("GET", keys.notifications_read(viewer)), ("ZMSCORE", keys.notifications(viewer), *members)]
        )
        listed = {group: int(score) for group, score in zip(groups, scores, strict=True) if score is not None}
        shown = await self._shown(view, listed, int(read_to or 0))
        by_group = {Group(each.kind, each.subject): each for each in shown}
        return [by_group.get(group) for group in groups]

    async def unread_count(self, view: View) -> int:
        """Return the number of the viewer's unread notifications; `MAX_UNREAD` + 1 if there are more than `MAX_UNREAD`.

        One round trip if there are none, else two of one command per group, and one more for the post of a group of
        reposts. Two more each time that groups are left out, and two if the newest repost of a group shows no visible
        user. Queries of the archive for archived posts and reposts. The groups are charged to the operation. Raises
        ArchiveUnavailable.
        """
        viewer = viewer_of(view)
        limit = MAX_UNREAD + 1
        count, size, further, below = 0, limit, 0, f"({MAX_NUMBER + 1}"
        names = [keys.notifications(viewer), keys.notifications_read(viewer)]
        while True:
            [words] = await self._store.read([script("unread").call(names, size, below)])
            rows = list(zip(words[::2], words[1::2], strict=True))
            if rows:
                count_items(STEPS_PER_GROUP * len(rows))
                count += await self._number_shown(view, groups_of(rows))
            if count >= limit or len(rows) < size:
                return min(count, limit)
            size = further = next_size(further, limit - count)
            below = f"({int(rows[-1][1])}"

    async def mark_read(self, viewer: int, up_to: int) -> None:
        """Mark the viewer's notifications with numbers up to `up_to` as read.

        Writes nothing if none of them is unread. Three round trips.
        """
        newest: Command = ("ZRANGE", keys.notifications(viewer), up_to, "-inf", "BYSCORE", "REV")
        read_to, rows = await self._store.read(
            [("GET", keys.notifications_read(viewer)), (*newest, "LIMIT", 0, 1, "WITHSCORES")]
        )
        if rows and int(rows[0][1]) > int(read_to or 0):
            await self._commit([NotificationsRead(viewer, up_to)])

    async def _shown(self, view: View, groups: dict[Group, int], read_to: int) -> list[Notification]:
        """Return the notifications of groups, in order, without groups that lack a visible user or their post.

        One round trip of one or two commands per group, and one query of the archive for archived posts. One more for
        groups of several reposts, and more if the newest users of a group are all muted or have undone their actions
        (`Actors.of`).
        """
        view.begin()
        crowds = {group: number for group, number in groups.items() if group.kind in CROWDS}
        posts = list(dict.fromkeys(group.subject for group in groups if has_post(group)))
        found, actors = await asyncio.gather(self._visible_posts(view, posts), self._actors.of(view, crowds))
        silenced = await view.silenced({post.author for post in found.values()})
        viewer, shown = viewer_of(view), []
        for group, number in groups.items():
            post = found.get(group.subject) if has_post(group) else None
            if post is None and has_post(group):
                continue
            if post is None or group.kind in CROWDS:
                crowd = actors.get(group, NOBODY)
                users, count = crowd.users[:MAX_ACTORS], crowd.size(group.kind, post)
            else:
                users, count = () if post.author in silenced else (post.author,), 1
            if users:
                shown.append(TYPES[group.kind](viewer, *group, number, number <= read_to, users, count, post))
        return shown

    async def _number_shown(self, view: View, groups: dict[Group, int]) -> int:
        """Return how many notifications `_shown` would return.

        One round trip of one command per group, and one more command for the post of a group of reposts. The post of a
        group of likes is not read, because its likes are deleted with it. Otherwise, the cost is that of `_shown`.
        """
        view.begin()
        crowds = {group: number for group, number in groups.items() if group.kind in CROWDS}
        posts = list(dict.fromkeys(group.subject for group in groups if has_post(group) and group.kind is not LIKE))
        authors, actors = await asyncio.gather(self._posts.authors(view, posts), self._actors.some(view, crowds))
        silenced = await view.silenced(set(authors.values()))
        shown = {post for post, author in authors.items() if author not in silenced}
        return sum(
            (group.kind not in CROWDS or bool(actors[group].users))
            and (group.subject in shown or group.kind is LIKE or not has_post(group))
            for group in groups
        )

    async def _visible_posts(self, view: View, posts: Sequence[int]) -> dict[int, Post]:
        found, _ = await self._posts.hydrate(view, posts, {}) if posts else ({}, [])
        return found


def next_size(previous: int, lacking: int) -> int:
    """Return how many groups to read after some were left out: more with each attempt, to fill the page."""
    return min(MAX_WINDOW, max(MIN_WINDOW, lacking, 2 * previous))


def has_post(group: Group) -> bool:
    """Return True if the subject of a group is a post."""
    return group.kind is not NotificationKind.FOLLOW


def viewer_of(view: View) -> int:
    """Return the viewer of a view. Raises ValueError for a view without a viewer, which has no notifications."""
    if view.viewer is None:
        raise ValueError("Notifications need a viewer. Check for a viewer first.")
    return view.viewer


def groups_of(rows: Iterable[tuple[str, Any]]) -> dict[Group, int]:
    """Return the groups among members of a list, with their numbers, in order."""
    parsed = ((parse_member(member), number) for member, number in rows)
    return {group: int(number) for group, number in parsed if group is not None}
