"""References: stand-ins for people who have not been looked up yet, good for all that needs no more than their id."""

from collections.abc import Sequence
from typing import Protocol


class Identified(Protocol):
    """A person, or a reference to one."""

    @property
    def id(self) -> int:
        """The person's id."""


class Reference:
    """A stand-in for the person with this id, who may not exist."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id


def refer(ids: Sequence[int]) -> list[Reference]:
    """Refer to people: with one reference to each, wherever an id stands."""
    made = {id_: Reference(id_) for id_ in ids}
    return [made[id_] for id_ in ids]
