"""References: stand-ins for people who have not been looked up yet, good for all that needs no more than their id."""

from typing import NamedTuple, Protocol


class Identified(Protocol):
    """A person, or a reference to one."""

    @property
    def id(self) -> int:
        """The person's id."""


class Reference(NamedTuple):
    """A stand-in for the person with this id, who may not exist."""

    id: int
