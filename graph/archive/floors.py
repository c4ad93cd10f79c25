"""The floors of an author's archived posts, in a module that does not import SQLAlchemy."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Floors:
    """The progress of one author's posts from the store into the archive.

    Every live post of the author up to `moved` has a row. Up to `freed`, the store no longer holds their records.
    """

    moved: int = 0
    freed: int = 0
