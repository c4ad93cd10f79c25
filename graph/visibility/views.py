"""Visibility: what a viewer may see. Every read whose result a client sees asks a `View`; nothing else decides.

- A user is *hidden* from a viewer if one of them blocks the other. The profile and the relationship stay visible to
  those who ask for the user. The user's posts, timelines, likes and lists are hidden, and so are the user's entries in
  the lists of others and the mentions of the user in posts.
- A *suspended* user is hidden from all users, and so are the user's profile and relationships.
- A user is *silenced* for a viewer if the user is hidden or muted. Home timelines, lists, the public timeline and
  notifications leave out silenced users; profiles, threads and search leave out hidden users only.

A request for a hidden object gets the same answer as for one that does not exist: null, an empty page or NOT_FOUND.

How to use it:

- `Graph.visibility.of(viewer)` returns the view of a viewer or, for None, of an anonymous client. A request has one
  view (`Loaders.view`), so that it reads the viewer's blocks and mutes at most once.
- `SYSTEM` is the view of the server itself, which sees everything: for look-ups whose result is not shown to any user.
- Call `view.begin()` with the first read of a page: the blocks and mutes then arrive with that read, in the same round
  trip. Afterwards `await view.hidden(users)` or `await view.silenced(users)` costs nothing if there are few blocks and
  mutes.
- Call `view.begin_suspended()` instead with a read of users only, and then `await view.suspended(users)`. A view knows
  the suspensions as of its first read, so that all reads of a request agree.
- With a near cache, `begin` does not read what the cache can provide after the reply to another read.
- `refuse_blocked` refuses an action on a user if the user is suspended, or blocks the viewer or is blocked by the
  viewer.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from graph import keys
from graph.errors import ProblemCode, Rejected, ViewerNeeded
from graph.store.commands import script
from graph.store.near_cache import MISSING, Moment
from graph.store.recall import LookUp, recall
from graph.store.store import Store
from graph.visibility.suspensions import Suspensions

FEW = 250
"""The maximum size of sets that are read whole. If one set is larger, the users of a page are looked up in all."""
FEW_NEAR = 100
"""The maximum number of users in each set of a viewer that the near cache keeps."""
TOO_MANY = None
"""A placeholder for a larger set in the near cache."""
SETS = range(3)
"""The positions of the sets in the result of `names_of`."""
NONE: frozenset[int] = frozenset()


@dataclass(slots=True)
class Exclusions:
    """The users whom a viewer blocks or mutes, or who block the viewer.

    If `complete`, the sets contain all such users, otherwise only those among `checked`.
    """

    complete: bool = True
    blocking: set[int] = field(default_factory=set)
    blockers: set[int] = field(default_factory=set)
    muting: set[int] = field(default_factory=set)
    checked: set[int] = field(default_factory=set)

    def hides(self, user: int) -> bool:
        """Return True if there is a block between the viewer and the user, in either direction."""
        return user in self.blocking or user in self.blockers

    def silences(self, user: int) -> bool:
        """Return True if the user is hidden from the viewer or muted."""
        return user in self.muting or self.hides(user)

    def add(self, other: "Exclusions") -> None:
        """Add the exclusions of further users."""
        self.complete = self.complete or other.complete
        self.blocking |= other.blocking
        self.blockers |= other.blockers
        self.muting |= other.muting
        self.checked |= other.checked


NOTHING = Exclusions()
"""The exclusions of an anonymous client."""
NOBODY: frozenset[int] = frozenset()


class View:
    """The perspective from which users and posts are read. This class sees everything; `ClientView` does not.

    `viewer` is the viewer's id, or None for an anonymous client and for the system. `moment` is when the request began,
    for the near cache (`graph.store.recall`); None reads everything from the store.
    """

    viewer: int | None = None
    moment: Moment | None = None

    def begin(self, users: Iterable[int] = ()) -> None:
        """Start reading the data that decides visibility; reads of the same event-loop ticks share the round trip.

        `users` are those whose visibility is needed first, if known: with many blocks, only they are looked up.
        """

    def begin_suspended(self) -> None:
        """Start reading the suspensions, as does `begin`; reads of the same event-loop ticks share the round trip."""

    async def suspended(self, users: Collection[int]) -> Set[int]:
        """Return the users among these who are suspended. No separate round trip if the view has begun."""
        return NOBODY

    async def suspended_anywhere(self) -> Set[int]:
        """Return all suspended users, whose posts a search can skip, or none if this process knows of none.

        One round trip at most, none if the view has begun.
        """
        return NOBODY

    def known_suspended(self) -> frozenset[int]:
        """Return the suspended users that this process knows of, as a hint before `suspended`. No round trip."""
        return NOBODY

    async def exclusions(self, users: Collection[int]) -> Exclusions:
        """Return the viewer's exclusions: all of them, or at least those among these users.

        No separate round trip if `begin` was called with other reads and the viewer's sets are small, else one.
        """
        return NOTHING

    def known_exclusions(self, users: Collection[int]) -> Exclusions | None:
        """Return what `exclusions` returns if it is known without waiting for the store, else None."""
        return NOTHING

    async def hidden(self, users: Collection[int]) -> Set[int]:
        """Return the users among these who are hidden from the viewer. Costs the same as `exclusions`."""
        exclusions, suspended = await self.exclusions(users), await self.suspended(users)
        if not exclusions.blocking and not exclusions.blockers:
            return suspended
        return {user for user in users if user in suspended or exclusions.hides(user)}

    async def silenced(self, users: Collection[int]) -> Set[int]:
        """Return the users among these who are hidden from the viewer or muted. Costs the same as `exclusions`."""
        exclusions, suspended = await self.exclusions(users), await self.suspended(users)
        return {user for user in users if user in suspended or exclusions.silences(user)}


SYSTEM = View()
"""The view of the server itself. It sees everything: use it only for results that are not shown to users."""


class ClientView(View):
    """The view of an anonymous client. It reads the suspensions once, so it must not outlive a request."""

    def __init__(self, store: Store, suspensions: Suspensions) -> None:
        self._store = store
        self._suspensions = suspensions
        self._asked: asyncio.Future[frozenset[int] | None] | None = None
        self._suspended: frozenset[int] | None = None

    def begin(self, users: Iterable[int] = ()) -> None:
        """Start reading the suspensions, unless already started. Let the near cache serve the request's next reads."""
        self._store.expect(self.moment)
        self.begin_suspended()

    def begin_suspended(self) -> None:
        """Start reading the suspensions, unless already started or the near cache will have them after another read."""
        if self._asked is None and not (self.moment is not None and self._suspensions.may_wait()):
            self._ask_suspended()

    def _ask_suspended(self) -> "asyncio.Future[frozenset[int] | None]":
        if self._asked is None:
            self._asked = self._suspensions.ask(self.moment)
        return self._asked

    def known_suspended(self) -> frozenset[int]:
        """Return the suspended users that this view has read or, before that, those that this process knows of."""
        return self._suspensions.known if self._suspended is None else self._suspended

    async def suspended(self, users: Collection[int]) -> Set[int]:
        """Return the users among these who are suspended."""
        suspended = await self._all_suspended()
        return suspended & {*users} if suspended else NOBODY

    async def suspended_anywhere(self) -> Set[int]:
        """Return the suspended users, or none if this process knows of none."""
        return await self._all_suspended() if self._suspensions.known else NOBODY

    async def _all_suspended(self) -> Set[int]:
        if self._suspended is None and self._asked is None:
            self._suspended = self._suspensions.near(self.moment)
        if self._suspended is None:
            found = await self._suspensions.users(self._ask_suspended())
            self._suspended = found if self._suspended is None else self._suspended
        return self._suspended


class ViewerView(ClientView):
    """The view of a viewer. It reads the viewer's blocks and mutes once, so it must not outlive a request."""

    def __init__(self, store: Store, suspensions: Suspensions, viewer: int) -> None:
        super().__init__(store, suspensions)
        self.viewer = viewer
        self._names = names_of(viewer)
        self._sets: asyncio.Future[list[frozenset[int] | None]] | None = None
        self._first: asyncio.Future[Exclusions] | None = None

    def begin(self, users: Iterable[int] = ()) -> None:
        """Start reading the suspensions and the viewer's exclusions.

        Reads that have begun are not repeated, and values that the near cache will have after another read are not
        read.
        """
        self._store.expect(self.moment)
        self.begin_suspended()
        if self._first is None and self._sets is None:
            near = self._near_sets()
            if not near or MISSING in near or TOO_MANY in near:
                self._begin_exclusions(users, near)

    def _near_sets(self) -> list[Any]:
        """Return the viewer's sets in the near cache, as a hint; an empty list if there is no near cache.

        Also an empty list if the cache does not remember absent keys, because most viewers block nobody.
        """
        near = self._store.near
        if near is None or self.moment is None or not near.tracking or not near.absences:
            return []
        return near.peek(self._names)

    def _begin_exclusions(self, users: Iterable[int], near: Sequence[Any]) -> None:
        """Start reading the viewer's exclusions: whole sets, for the near cache, unless one is known to be large."""
        if not near or TOO_MANY in near:
            self._begin_first(users)
            return
        look_up = LookUp("ZRANGE", self._names.__getitem__, ("0", str(FEW_NEAR)), as_sets)
        self._sets = recall(self._store, look_up, SETS, self.moment)

    def _begin_first(self, users: Iterable[int]) -> None:
        """Start reading the viewer's exclusions (only those of `users` if there are many), unless already started."""
        if self._first is None:
            self._first = self._ask(users)

    async def exclusions(self, users: Collection[int]) -> Exclusions:
        """Return the viewer's exclusions: all of them, or at least those among these users."""
        self.begin(users)
        if self._first is None and self._sets is None:
            self._begin_exclusions(users, self._near_sets())
        if self._first is None and self._sets is not None:
            sets = self._sets.result() if self._sets.done() else await asyncio.shield(self._sets)
            if TOO_MANY in sets:
                self._begin_first(users)
            elif self._first is None:
                self._first = self._store.running_loop().create_future()
                self._first.set_result(Exclusions(True, *[set(users or ()) for users in sets]))
        assert self._first is not None  # noqa: S101 - begun above
        exclusions = self._first.result() if self._first.done() else await asyncio.shield(self._first)
        if not exclusions.complete and (unknown := set(users) - exclusions.checked):
            exclusions.add(await self._ask(unknown))
        return exclusions

    def known_exclusions(self, users: Collection[int]) -> Exclusions | None:
        """Return what `exclusions` returns if it is known without waiting for the store, else None."""
        first = self._first
        if first is None or not first.done() or first.cancelled() or first.exception() is not None:
            return None
        exclusions = first.result()
        return exclusions if exclusions.complete or exclusions.checked.issuperset(users) else None

    def _ask(self, users: Iterable[int]) -> "asyncio.Future[Exclusions]":
        checked = sorted(users)
        read = script("hidden").call(self._names, FEW, *checked)
        return self._store.ask([read], partial(as_exclusions, checked))


class ViewOfSeveral(ClientView):
    """The view of an execution for several viewers. It knows only the suspensions, which are the same for all."""

    async def exclusions(self, users: Collection[int]) -> Exclusions:
        """Raise ViewerNeeded."""
        raise ViewerNeeded

    def known_exclusions(self, users: Collection[int]) -> Exclusions | None:
        """Raise ViewerNeeded."""
        raise ViewerNeeded


class Visibility:
    """Creates views. A process has one instance for each store, because the instance remembers the suspended users.

    `projected` returns a number up to which every event is projected.
    """

    def __init__(self, store: Store, projected: Callable[[], int]) -> None:
        self._store = store
        self._suspensions = Suspensions(store, projected)

    def suspended_now(self, users: Set[int]) -> Set[int]:
        """Return the users among these whom this process knows to be suspended. No round trip."""
        return self._suspensions.known & users

    @property
    def all_suspended_now(self) -> Set[int]:
        """The suspended users that this process knows of. No round trip."""
        return self._suspensions.known

    def note_suspension(self, user: int, number: int, *, suspended: bool) -> None:
        """Record an event of the log that suspends a user or ends the suspension."""
        self._suspensions.note(user, number, suspended=suspended)

    def forget_noted_suspensions(self) -> None:
        """Use only the suspensions that were read from the store, because the log has lost events."""
        self._suspensions.forget_noted()

    def of(self, viewer: int | None, moment: Moment | None = None) -> View:
        """Return the view of a viewer, or of an anonymous client for None. No round trip until it is used.

        `moment` is when the request that uses the view began; without it, the view reads everything from the store.
        """
        view = self._view(viewer)
        view.moment = moment
        return view

    def _view(self, viewer: int | None) -> View:
        if viewer is None:
            return ClientView(self._store, self._suspensions)
        return ViewerView(self._store, self._suspensions, viewer)

    async def exclusions_of(self, viewers: Sequence[int], users: Sequence[int]) -> list[Exclusions]:
        """Return each viewer's exclusions: all of them, or at least those among these users. One round trip."""
        asked = [script("hidden").call(names_of(viewer), FEW, *users) for viewer in viewers]
        return [as_exclusions(users, [reply]) for reply in await self._store.read(asked)]

    async def hidden_from(self, viewers: Sequence[int], users: Collection[int]) -> list[Set[int]]:
        """Return, for each viewer, the users among these whom a block hides. One round trip, or none without users.

        Suspended users are not included, because they are the same for all viewers.
        """
        if not users or not viewers:
            return [NOBODY for _ in viewers]
        found = await self.exclusions_of(viewers, sorted(set(users)))
        return [{user for user in users if exclusions.hides(user)} for exclusions in found]

    def of_several(self) -> View:
        """Return a view for an execution whose result goes to several viewers. Its exclusions raise ViewerNeeded."""
        return ViewOfSeveral(self._store, self._suspensions)


async def refuse_blocked(view: View, user: int, *fields: str) -> None:
    """Raise Rejected (BLOCKED) if there is a block between the viewer and the author of a post.

    Raise Rejected (NOT_FOUND) if the author is suspended, because then the post must appear not to exist.

    `user` is the author of the post that the action concerns, and `fields` the path of the input field that names it.
    Costs the same as `View.exclusions`: call `view.begin([user])` with an earlier read if the user is known then.
    """
    hidden = await view.hidden([user])
    if await view.suspended([user]):
        raise no_post(*fields)
    if hidden:
        raise blocked(*fields)


def no_post(*fields: str) -> Rejected:
    """Return the rejection of a request for a post that does not exist, or that the viewer must not see."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This post does not exist.", *fields)


def blocked(*fields: str) -> Rejected:
    """Return the rejection of an action that a block forbids."""
    message = "You have blocked this user, or this user has blocked you."
    return Rejected.because(ProblemCode.BLOCKED, message, *fields)


def names_of(viewer: int) -> list[str]:
    """Return the keys of the sets that decide what is hidden from a viewer."""
    return [keys.blocking(viewer), keys.blockers(viewer), keys.muting(viewer)]


def as_exclusions(checked: Iterable[int], replies: Sequence[Any]) -> Exclusions:
    """Return the exclusions in the reply of `hidden.lua`."""
    [[complete, *sets]] = replies
    blocking, blockers, muting = ({int(user) for user in users} for users in sets)
    return Exclusions(bool(complete), blocking, blockers, muting, set(checked))


def as_sets(_: Sequence[int], replies: Sequence[Sequence[str]]) -> list[frozenset[int] | None]:
    """Return the users in replies to `ZRANGE`; TOO_MANY for a set that is larger than the near cache keeps."""
    return [
        (frozenset(map(int, users)) if len(users) <= FEW_NEAR else TOO_MANY) if users else NONE for users in replies
    ]
