"""Relationships between a viewer and other users, derived from the viewer's followers and following sets."""

import asyncio
from collections.abc import Sequence
from functools import partial

from graph import keys
from graph.model import Relationship, new_relationship
from graph.store.store import Store


class Relationships:
    """Derives relationships. None are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def between(self, viewer: int, subjects: Sequence[int]) -> "asyncio.Future[list[Relationship]]":
        """Return the relationship between the viewer and each subject. One round trip of two commands.

        Only keys of the viewer are read, so the cost does not depend on the subjects' followers.
        """
        key_pair = (keys.following(viewer), keys.followers(viewer)) if subjects else ()
        return self._store.ask(
            [("ZMSCORE", key, *subjects) for key in key_pair], partial(as_relationships, viewer, subjects)
        )


def as_relationships(viewer: int, subjects: Sequence[int], scores: Sequence[list[float | None]]) -> list[Relationship]:
    """Return relationships from the subjects' scores in the viewer's following and followers sets."""
    if not subjects:
        return []
    following, followers = scores
    return [
        new_relationship((viewer, subject, None if forth is None else int(forth), None if back is None else int(back)))
        for subject, forth, back in zip(subjects, following, followers, strict=True)
    ]
