"""The floors of an author's archived posts, in a module that loads no SQL library."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Floors:
    """How far the moving of one author's posts into the archive has come.

    Every live post of the author up to `moved` has its row; up to `freed` the store's records of them are gone.
    """

    moved: int = 0
    freed: int = 0
