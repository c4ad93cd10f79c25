"""The authors whose posts a home stream shows, kept up to date by applying the events of the log in order."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from graph.log.events import Blocked, Event, Followed, Unblocked, Unfollowed
from graph.log.pair_events import Muted, Unmuted

Changes = tuple[list[int], list[int]]
"""The authors that are added to the home timeline, and the authors that are removed from it."""


class UserIds(Protocol):
    """A collection of distinct user ids."""

    def add(self, user: int, /) -> None:
        """Add a user."""

    def discard(self, user: int, /) -> None:
        """Remove a user, if present."""

    def __contains__(self, user: object, /) -> bool: ...

    def __iter__(self) -> Iterator[int]: ...


class CompactUsers:
    """Distinct user ids, in 8 bytes each. Look-ups and changes are O(n)."""

    __slots__ = ("_users",)

    def __init__(self, users: Iterable[int]) -> None:
        self._users = array("q", users)

    def add(self, user: int) -> None:
        """Add a user."""
        if user not in self._users:
            self._users.append(user)

    def discard(self, user: int) -> None:
        """Remove a user, if present."""
        if user in self._users:
            self._users.remove(user)

    def __contains__(self, user: object) -> bool:
        return user in self._users

    def __iter__(self) -> Iterator[int]:
        return iter(self._users)


@dataclass(slots=True)
class HomeState:
    """The authors in a viewer's home timeline, and the mutes and blocks that affect them.

    `authors` are the followed users who are not muted, and `muted_followees` the followed users who are muted.
    `blocking` and `blockers` may be incomplete if there are very many: the updates of a stream are then checked in the
    store.
    """

    authors: UserIds
    muted_followees: set[int] = field(default_factory=set)
    muted: set[int] = field(default_factory=set)
    blocking: set[int] = field(default_factory=set)
    blockers: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, followed: Iterable[int], muted: set[int], blocking: set[int], blockers: set[int]) -> "HomeState":
        """Return the state of a viewer who follows, mutes and blocks these users."""
        followed = {*followed}
        return cls(followed - muted, followed & muted, {*muted}, {*blocking}, {*blockers})

    def apply(self, viewer: int, event: Event) -> Changes:
        """Apply the next event, if it is about the viewer's follows, mutes or blocks, and return the changed authors.

        A follow that is committed while one user blocks the other never counts: the unblock has a higher number.
        """
        match event.body:
            case Followed(follower, user) if follower == viewer:
                if user in self.blocking or user in self.blockers:
                    return [], []
                if user in self.muted:
                    self.muted_followees.add(user)
                    return [], []
                return self._show(user)
            case Unfollowed(follower, user) if follower == viewer:
                return self._end(user)
            case Muted(muter, user) if muter == viewer:
                self.muted.add(user)
                if user in self.authors:
                    self.muted_followees.add(user)
                return self._hide(user)
            case Unmuted(muter, user) if muter == viewer:
                self.muted.discard(user)
                if user in self.muted_followees:
                    self.muted_followees.discard(user)
                    return self._show(user)
            case Blocked() | Unblocked() as body if viewer in (body.blocker, body.blocked):
                return self._block(viewer, body)
            case _:
                pass
        return [], []

    def _block(self, viewer: int, body: Blocked | Unblocked) -> Changes:
        """Apply a block or unblock, both of which end the follow."""
        user, blocks = (body.blocked, self.blocking) if body.blocker == viewer else (body.blocker, self.blockers)
        if isinstance(body, Blocked):
            blocks.add(user)
        else:
            blocks.discard(user)
        return self._end(user)

    def _show(self, user: int) -> Changes:
        if user in self.authors:
            return [], []
        self.authors.add(user)
        return [user], []

    def _hide(self, user: int) -> Changes:
        if user not in self.authors:
            return [], []
        self.authors.discard(user)
        return [], [user]

    def _end(self, user: int) -> Changes:
        self.muted_followees.discard(user)
        return self._hide(user)
