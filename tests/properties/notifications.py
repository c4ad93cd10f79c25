"""Notifications in the machine: rules that mention users and mark notifications as read, and the check of all lists."""

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import redis
from hypothesis.stateful import precondition, rule

from graph import Graph, keys
from graph.log.notification_groups import Notification
from graph.model import MAX_NUMBER
from graph.paging import Window
from tests.properties.blocks import BlockRules
from tests.properties.disasters import Disaster
from tests.properties.notified import Entry, Notified
from tests.properties.requests import apis, calls, users

WINDOWS = (Window(1, forward=True), Window(2, forward=False), Window(3, forward=True), Window(9, forward=True))


class NotificationRules(BlockRules):
    """The part of the machine that mentions users and marks notifications as read."""

    @rule(process=apis, author=users, whom=users, calls=calls)
    def mention(self, process: str, author: int, whom: int, calls: int) -> None:
        """A user mentions another user or themselves."""
        self.texts += 1
        user, text = self.user_at(author), f"text {self.texts} @user{whom % self.population}"
        operation = self.history.start(process, "publish", user, text)
        self._launch(operation, self.graph_of(process).posts.publish(user, text), calls)

    @precondition(lambda self: self.disaster is Disaster.NONE)
    @rule(process=apis, viewer=users, which=st.integers(0, 5), calls=calls)
    def mark_read(self, process: str, viewer: int, which: int, calls: int) -> None:
        """A user marks notifications as read, up to one in the list or beyond all of them."""
        user = self.user_at(viewer)
        listed: Any = self.raw.zrange(keys.notifications(user), 0, -1, desc=True, withscores=True)
        numbers = [MAX_NUMBER, *(int(score) for _, score in listed)]
        work = self.graph_of(process).notifications.mark_read(user, numbers[which % len(numbers)])
        self._launch(self.history.start(process, "mark", user), work, calls)


async def check_notifications(graph: Graph, raw: redis.Redis, model: Notified, people: Sequence[int]) -> None:
    """Check the pages of all users in both directions, and the numbers of unread notifications.

    Notifications find only users whose likes and reposts are in the store, so groups with archived ones are not
    checked. Suspended users are left out: they see nothing of their own and have no sessions.
    """
    for user in {*people} - model.suspended:
        entries = model.entries(user)
        archived = {(each.kind, each.subject) for each in entries if has_floor(raw, each)}
        expected = [each for each in entries if (each.kind, each.subject) not in archived]
        for window in WINDOWS:
            found = await all_of(graph, user, window)
            shown = [each for each in found if (each.kind.name, each.subject) not in archived]
            assert [as_entry(each, like) for each, like in zip(shown, expected, strict=True)] == expected
        if not archived:
            unread = await graph.notifications.unread_count(graph.visibility.of(user))
            assert unread == sum(not each.is_read for each in expected)


def has_floor(raw: redis.Redis, entry: Entry) -> bool:
    """Return whether likes or reposts of a group may be in the archive only."""
    key = {"LIKE": keys.likes, "REPOST": keys.reposts}.get(entry.kind)
    return key is not None and bool(raw.zscore(key(entry.subject), "f"))


async def all_of(graph: Graph, user: int, window: Window) -> list[Notification]:
    """Return all notifications of a user, newest first, read in pages of the first window's size and direction."""
    seen: list[Notification] = []
    while True:
        page = await graph.notifications.page(graph.visibility.of(user), window)
        seen = [*seen, *page.items] if window.forward else [*page.items, *seen]
        if not (page.has_next if window.forward else page.has_previous):
            return seen
        end = seen[-1].number if window.forward else seen[0].number
        window = Window(window.count, window.forward, **({"high": end} if window.forward else {"low": end}))


def as_entry(found: Notification, like: Entry) -> Entry:
    """Return a notification as an entry of the model. If there are too many users, they are not compared."""
    actors, size = (like.actors, None) if like.size is None else (found.actors, found.actors_count)
    return Entry(found.kind.name, found.subject, found.number, found.is_read, actors, size)
