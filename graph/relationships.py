"""Relationships: how a viewer and others stand to each other, derived from the viewer's own two sets."""

import asyncio
from collections.abc import Sequence
from functools import partial

from graph import keys
from graph.model import Relationship, new_relationship
from graph.store.store import Store


class Relationships:
    """Derives relationships; stores none."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def between(self, viewer: int, subjects: Sequence[int]) -> "asyncio.Future[list[Relationship]]":
        """Tell how the viewer stands to each subject: two ZMSCORE on the viewer's keys, however many subjects.

        Works for a subject with a million followers and on a cluster, because no key but the viewer's is touched.
        One round trip.
        """
        key_pair = (keys.following(viewer), keys.followers(viewer)) if subjects else ()
        return self._store.ask(
            [("ZMSCORE", key, *subjects) for key in key_pair], partial(as_relationships, viewer, subjects)
        )


def as_relationships(viewer: int, subjects: Sequence[int], scores: Sequence[list[float | None]]) -> list[Relationship]:
    """Read the scores of the subjects in whom the viewer follows, and in the viewer's followers: numbers of events."""
    if not subjects:
        return []
    following, followers = scores
    return [
        new_relationship((viewer, subject, None if forth is None else int(forth), None if back is None else int(back)))
        for subject, forth, back in zip(subjects, following, followers, strict=True)
    ]
