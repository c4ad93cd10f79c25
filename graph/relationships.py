"""Relationships: how a viewer and others stand to each other, derived from the viewer's own two sets."""

from collections.abc import Sequence

from graph import keys
from graph.model import Relationship
from graph.store import Store


class Relationships:
    """Derives relationships; stores none."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def between(self, viewer: int, subjects: Sequence[int]) -> list[Relationship]:
        """Tell how the viewer stands to each subject: two ZMSCORE on the viewer's keys, however many subjects.

        Works for a subject with a million followers and on a cluster, because no key but the viewer's is touched.
        """
        if not subjects:
            return []
        following, followers = await self._store.read(
            [
                ("ZMSCORE", keys.following(viewer), *subjects),
                ("ZMSCORE", keys.followers(viewer), *subjects),
            ]
        )
        return [
            Relationship(viewer, subject, number(forth), number(back))
            for subject, forth, back in zip(subjects, following, followers, strict=True)
        ]


def number(score: float | None) -> int | None:
    """Read a score as the number of a fact."""
    return None if score is None else int(score)
