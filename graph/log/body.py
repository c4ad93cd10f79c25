"""The base class of the bodies of events."""

from typing import ClassVar


class Body:
    """The base class of the bodies of events.

    `ACTOR` and `SUBJECT` name the fields that hold the acting user and the user, post or list that the event is about,
    if there are such fields. The actor of an event without an `ACTOR` is the event's own number.
    """

    __slots__ = ()

    ACTOR: ClassVar[str | None] = None
    SUBJECT: ClassVar[str | None] = None
