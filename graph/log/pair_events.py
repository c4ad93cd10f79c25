"""The events that begin and end mutes and bookmarks: the pairs of `graph.relations.pair_sets`."""

from dataclasses import dataclass
from typing import ClassVar

from graph.log.body import Body


@dataclass(frozen=True, slots=True)
class Muted(Body):
    """`muter` began to mute `muted`."""

    ACTOR: ClassVar[str | None] = "muter"
    SUBJECT: ClassVar[str | None] = "muted"

    muter: int
    muted: int


@dataclass(frozen=True, slots=True)
class Unmuted(Body):
    """`muter` stopped muting `muted`."""

    ACTOR: ClassVar[str | None] = "muter"
    SUBJECT: ClassVar[str | None] = "muted"

    muter: int
    muted: int


@dataclass(frozen=True, slots=True)
class Bookmarked(Body):
    """`user` bookmarked a post."""

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int


@dataclass(frozen=True, slots=True)
class BookmarkRemoved(Body):
    """`user` removed a bookmark."""

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "post"

    user: int
    post: int
