"""The events of operators, the reports that users send to them, and repairs. See `graph.log.events`."""

from dataclasses import dataclass
from typing import ClassVar

from graph.log.body import Body


@dataclass(frozen=True, slots=True)
class UserSuspended(Body):
    """An operator suspended a user. As in permission events, the actor is the affected user."""

    ACTOR: ClassVar[str | None] = "user"

    user: int


@dataclass(frozen=True, slots=True)
class UserUnsuspended(Body):
    """An operator ended the suspension of a user."""

    ACTOR: ClassVar[str | None] = "user"

    user: int


@dataclass(frozen=True, slots=True)
class Reported(Body):
    """A user reported a user or a post to the operators. `author` is the author of a reported post, else None."""

    ACTOR: ClassVar[str | None] = "user"
    SUBJECT: ClassVar[str | None] = "subject"

    user: int
    subject: int
    reason: str
    comment: str = ""
    author: int | None = None


@dataclass(frozen=True, slots=True)
class ReportsClosed(Body):
    """An operator closed all earlier reports of a user or a post. Operators have no id: the event has no actor."""

    SUBJECT: ClassVar[str | None] = "subject"

    subject: int


@dataclass(frozen=True, slots=True)
class StoreRepaired(Body):
    """A repair corrected what pages show, without events that would tell streams what has changed."""
