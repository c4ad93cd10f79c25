"""The canonical hot window: decides which of an author's posts belong in the store, and which in the archive only.

The window holds an author's newest posts up to an age limit. The newest few stay regardless of their age, so that a
page of an inactive author needs no query. A store may hold more posts than the window until they are removed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from graph.model import number_at
from graph.post_lists import PostList
from graph.tuning import Tuning


@dataclass(frozen=True, slots=True)
class HotLimits:
    """The limits of the window: at most `posts` posts, none below number `oldest` except the newest `newest` posts."""

    posts: int
    newest: int
    oldest: int

    @classmethod
    def of(cls, tuning: Tuning, now: datetime) -> "HotLimits":
        """Return the limits that apply at a given time."""
        return cls(tuning.hot_posts, min(tuning.hot_newest, tuning.hot_posts), max(0, number_at(now - tuning.hot_age)))


def floor(posts: Sequence[int], limits: HotLimits) -> int:
    """Return an author's archive floor: the newest post that is not in the window, or 0 if all are in it.

    `posts` are the author's newest live posts, newest first: all posts, or at least one more than the window may hold.
    O(n).
    """
    for place, post in enumerate(posts):
        if place >= limits.posts or (place >= limits.newest and post < limits.oldest):
            return post
    return 0


def cold(posts: Iterable[int], floor: int) -> int:
    """Return the number of live posts up to and including the archive floor. O(n)."""
    return sum(post <= floor for post in posts)


@dataclass(frozen=True, slots=True)
class Cut:
    """The archive floor of each owner's list of one kind, and the count of the list's posts up to it, if not 0."""

    floors: Mapping[int, int] = field(default_factory=dict)
    cold: Mapping[int, int] = field(default_factory=dict)


UNCUT = Cut()

Cuts: TypeAlias = Mapping[PostList, Cut]
