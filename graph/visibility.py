"""Visibility: what a viewer may see. Every exit of the graph asks a `View`, and nothing else decides.

- A user is *hidden* from a viewer if one of them blocks the other. The profile and the relationship stay visible. The
  user's posts, timelines, likes and lists are hidden, and so are the user's entries in the lists of others.
- A user is *silenced* for a viewer if the user is hidden or muted. Home timelines, lists, the public timeline and
  notifications leave out silenced users; profiles, threads and search leave out hidden users only.

A hidden object answers like one that does not exist: null, an empty page, NOT_FOUND. No error tells the difference.

How to use it:

- `Graph.visibility.of(viewer)` returns the view of a viewer or, for None, of an anonymous client. A request has one
  view (`Loaders.view`), so that it reads the viewer's blocks and mutes at most once.
- `SYSTEM` is the view of the server itself, which sees everything: for look-ups whose result is shown to nobody.
- Call `view.begin()` with the first read of a page: the blocks and mutes then arrive with that read, in the same round
  trip. Afterwards `await view.hidden(users)` or `await view.silenced(users)` costs nothing if they are few.
- `refuse_blocked` refuses an action on a user across a block.
"""

import asyncio
from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graph import keys
from graph.errors import ProblemCode, Rejected
from graph.store.commands import script
from graph.store.store import Store

FEW = 250
"""The most users in each set of a viewer that are read at once. In larger sets, the users of a page are looked up."""


@dataclass(slots=True)
class Marks:
    """Whom a viewer blocks, is blocked by and mutes: all of them if `complete`, else those among `checked` users."""

    complete: bool = True
    blocking: set[int] = field(default_factory=set)
    blockers: set[int] = field(default_factory=set)
    muting: set[int] = field(default_factory=set)
    checked: set[int] = field(default_factory=set)

    def hides(self, user: int) -> bool:
        """Return True if a block stands between the viewer and the user, in either direction."""
        return user in self.blocking or user in self.blockers

    def silences(self, user: int) -> bool:
        """Return True if the user is hidden from the viewer or muted."""
        return user in self.muting or self.hides(user)

    def add(self, other: "Marks") -> None:
        """Add the marks of further users."""
        self.complete = self.complete or other.complete
        self.blocking |= other.blocking
        self.blockers |= other.blockers
        self.muting |= other.muting
        self.checked |= other.checked


NOTHING = Marks()
"""The marks of an anonymous client."""


class View:
    """The eyes that look at users and posts. This class sees everything; `ViewerView` is the view of a viewer.

    `viewer` is the viewer's id, None for an anonymous client and for the system.
    """

    viewer: int | None = None

    def begin(self, users: Iterable[int] = ()) -> None:
        """Start to read what decides about visibility, in the round trip of other reads of the same ticks.

        `users` are those whose visibility is needed first, if known: with many blocks, only they are looked up.
        """

    async def marks(self, users: Collection[int]) -> Marks:
        """Return the viewer's marks, complete or with these users checked.

        No round trip of its own if `begin` was called with other reads and the viewer's sets are small, else one.
        """
        return NOTHING

    async def hidden(self, users: Collection[int]) -> Set[int]:
        """Return those of the users who are hidden from the viewer. Costs what `marks` costs."""
        marks = await self.marks(users)
        return {user for user in users if marks.hides(user)} if marks.blocking or marks.blockers else frozenset()

    async def silenced(self, users: Collection[int]) -> Set[int]:
        """Return those of the users who are hidden from the viewer or muted. Costs what `marks` costs."""
        marks = await self.marks(users)
        return {user for user in users if marks.silences(user)}


SYSTEM = View()
"""The view of the server itself. It sees everything: use it only for what is shown to nobody."""


class ViewerView(View):
    """The view of a viewer. It reads the viewer's blocks and mutes once, so it must not outlive a request."""

    def __init__(self, store: Store, viewer: int) -> None:
        self.viewer = viewer
        self._store = store
        self._first: asyncio.Future[Marks] | None = None

    def begin(self, users: Iterable[int] = ()) -> None:
        """Start to read the viewer's marks, unless that has begun."""
        if self._first is None:
            self._first = self._ask(users)
            self._first.add_done_callback(retrieve)

    async def marks(self, users: Collection[int]) -> Marks:
        """Return the viewer's marks, complete or with these users checked."""
        self.begin(users)
        assert self._first is not None  # noqa: S101 - set by begin
        marks = self._first.result() if self._first.done() else await asyncio.shield(self._first)
        if not marks.complete and (unknown := set(users) - marks.checked):
            marks.add(await self._ask(unknown))
        return marks

    def _ask(self, users: Iterable[int]) -> "asyncio.Future[Marks]":
        viewer, checked = self.viewer or 0, sorted(users)
        names = [keys.blocking(viewer), keys.blockers(viewer), keys.muting(viewer)]
        return self._store.ask([script("hidden").call(names, FEW, *checked)], partial(as_marks, checked))


class Visibility:
    """Makes views."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, viewer: int | None) -> View:
        """Return the view of a viewer, or of an anonymous client for None. No round trip until it is used."""
        return ANONYMOUS if viewer is None else ViewerView(self._store, viewer)


ANONYMOUS = View()
"""The view of a client that is not logged in."""


async def refuse_blocked(view: View, user: int, *fields: str) -> None:
    """Raise Rejected (BLOCKED) if a block stands between the viewer and the user: for replies, quotes, likes, reposts.

    `user` is the author of the post that the action is about, and `fields` the path of the input field that names it.
    Costs what `View.marks` costs: call `view.begin([user])` with an earlier read if the user is known then.
    """
    if await view.hidden([user]):
        raise blocked(*fields)


def blocked(*fields: str) -> Rejected:
    """Return the rejection of an action across a block."""
    message = "You block this user, or this user blocks you."
    return Rejected.because(ProblemCode.BLOCKED, message, *fields)


def as_marks(checked: Iterable[int], replies: Sequence[Any]) -> Marks:
    """Return the marks in the reply of `hidden.lua`."""
    [[complete, *sets]] = replies
    blocking, blockers, muting = ({int(user) for user in users} for users in sets)
    return Marks(bool(complete), blocking, blockers, muting, set(checked))


def retrieve(done: "asyncio.Future[Marks]") -> None:
    """Mark an exception as retrieved: the page may have failed before it needed the marks."""
    if not done.cancelled():
        done.exception()
