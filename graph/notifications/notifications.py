"""The notifications of users: pages, the number of unread ones, and how far they are read.

A user's list holds groups with numbers; who acts in a group is read from the sets of followers, likes and reposts, and
from the posts. So taking something back needs no change of the list: a group without users is left out. So is one whose
post is deleted or hidden, or in which only users act who are muted or blocked.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from graph import keys
from graph.commit import Commit
from graph.log.events import NotificationsRead
from graph.model import MAX_NUMBER, Page, Post
from graph.notifications.actors import CROWDS, NOBODY, Actors
from graph.notifications.groups import MAX_ACTORS, Group, Notification, NotificationKind, parse_member
from graph.paging import Window
from graph.posts import Posts
from graph.store.commands import Command, script
from graph.store.store import Store
from graph.visibility import View

MAX_UNREAD = 100
"""Unread notifications are counted up to this number."""
MAX_WINDOW = 1000
LIKE = NotificationKind.LIKE


class Notifications:
    """The notifications of users."""

    def __init__(self, store: Store, commit: Commit, posts: Posts) -> None:
        self._store = store
        self._commit = commit
        self._posts = posts
        self._actors = Actors(store, posts)

    async def page(self, view: View, window: Window) -> Page[Notification]:
        """Return a page of the viewer's notifications, newest first.

        Two round trips, one more for groups of several reposts, and as many for each time that groups are left out. One
        query of the archive if the page has archived posts, and up to two for archived reposts. Raises
        ArchiveUnavailable.
        """
        view.begin()
        found: list[Notification] = []
        rest = replace(window, count=window.count + 1)
        while True:
            mark, rows = await self._slice(view, rest)
            groups = groups_of(rows)
            found += await self._shown(view, groups, mark)
            if len(found) > window.count or len(rows) < rest.count:
                return window.page(found)
            last = int(rows[-1][1])
            following = replace(rest, count=min(MAX_WINDOW, 2 * rest.count))
            rest = replace(following, high=last) if rest.forward else replace(following, low=last)

    async def _slice(self, view: View, window: Window) -> tuple[int, list[tuple[str, float]]]:
        """Return the number read up to, and the members of a window with their numbers. One round trip."""
        viewer = viewer_of(view)
        low, high = f"({window.low}", f"({window.high}"
        bounds = (high, low, "BYSCORE", "REV") if window.forward else (low, high, "BYSCORE")
        page: Command = ("ZRANGE", keys.notifications(viewer), *bounds, "LIMIT", 0, window.count, "WITHSCORES")
        mark, rows = await self._store.read([("GET", keys.read_mark(viewer)), page])
        return int(mark or 0), rows

    async def get_many(self, view: View, groups: Sequence[Group]) -> list[Notification | None]:
        """Return notifications of the viewer by group; None for those that are not in the list or left out.

        Two round trips, one more for groups of several reposts, and queries of the archive for archived posts and
        reposts. Raises ArchiveUnavailable.
        """
        viewer, members = viewer_of(view), [group.member for group in groups]
        if not members:
            return []
        mark, scores = await self._store.read(
            [("GET", keys.read_mark(viewer)), ("ZMSCORE", keys.notifications(viewer), *members)]
        )
        listed = {group: int(score) for group, score in zip(groups, scores, strict=True) if score is not None}
        shown = await self._shown(view, listed, int(mark or 0))
        by_group = {Group(each.kind, each.subject): each for each in shown}
        return [by_group.get(group) for group in groups]

    async def unread_count(self, view: View) -> int:
        """Return the number of the viewer's unread notifications, at most `MAX_UNREAD`.

        One round trip if there are none, else two of one command per group, and as many again if groups are left out.
        One more if the newest repost of a group shows nobody. Queries of the archive for archived posts and reposts.
        Raises ArchiveUnavailable.
        """
        viewer = viewer_of(view)
        count, most, below = 0, MAX_UNREAD, f"({MAX_NUMBER + 1}"
        names = [keys.notifications(viewer), keys.read_mark(viewer)]
        while True:
            [words] = await self._store.read([script("unread").call(names, most, below)])
            rows = list(zip(words[::2], words[1::2], strict=True))
            if rows:
                count += len(await self._shown(view, groups_of(rows), 0, counted=False))
            if count >= MAX_UNREAD or len(rows) < most:
                return min(count, MAX_UNREAD)
            most, below = MAX_WINDOW, f"({int(rows[-1][1])}"

    async def mark_read(self, viewer: int, upto: int) -> None:
        """Mark the viewer's notifications with numbers up to `upto` as read.

        If there are no unread ones among them, nothing is written. Three round trips.
        """
        newest: Command = ("ZRANGE", keys.notifications(viewer), upto, "-inf", "BYSCORE", "REV")
        mark, rows = await self._store.read([("GET", keys.read_mark(viewer)), (*newest, "LIMIT", 0, 1, "WITHSCORES")])
        if rows and int(rows[0][1]) > int(mark or 0):
            await self._commit([NotificationsRead(viewer, upto)])

    async def _shown(
        self, view: View, groups: dict[Group, int], mark: int, *, counted: bool = True
    ) -> list[Notification]:
        """Return the notifications of groups, in order, without those that nobody visible acts in or without a post.

        One round trip of one command per group, or two if the posts and the users who act are `counted`, and one query
        of the archive for archived posts. One more for groups of several reposts, and more if the newest users of a
        group are all muted or have taken back what they did (`Actors.of`). Without counting, the post of a group of
        likes is not read: its likes are deleted with it.
        """
        view.begin()
        crowds = {group: number for group, number in groups.items() if group.kind in CROWDS}
        posts = [group.subject for group in groups if has_post(group) and (counted or group.kind is not LIKE)]
        found, actors = await asyncio.gather(
            self._visible_posts(view, posts), self._actors.of(view, crowds, counted=counted)
        )
        silenced = await view.silenced({post.author for post in found.values()})
        shown = []
        for group, number in groups.items():
            post = found.get(group.subject) if has_post(group) else None
            crowd = actors.get(group, NOBODY)
            users, count = crowd.users[:MAX_ACTORS], crowd.size(group.kind, post)
            if group.kind not in CROWDS and post is not None and post.author not in silenced:
                users, count = (post.author,), 1
            if users and (post is not None or not has_post(group) or (group.kind is LIKE and not counted)):
                shown.append(Notification(viewer_of(view), *group, number, number <= mark, users, count, post))
        return shown

    async def _visible_posts(self, view: View, posts: Sequence[int]) -> dict[int, Post]:
        found, _ = await self._posts.hydrate(view, posts, {}) if posts else ({}, [])
        return found


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
