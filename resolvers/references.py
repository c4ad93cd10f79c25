"""References to users: stand-ins with the user's id, available before the user is looked up."""

from collections.abc import Sequence
from typing import Protocol


class Identified(Protocol):
    """A user, or a reference to one."""

    @property
    def id(self) -> int:
        """The user's id."""


class Reference:
    """A stand-in for the user with this id, who might not exist."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id


def refer(ids: Sequence[int]) -> list[Reference]:
    """Return a reference for each id. Equal ids share one reference."""
    references = {id_: Reference(id_) for id_ in set(ids)}
    return [references[id_] for id_ in ids]
