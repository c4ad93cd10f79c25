"""Relationships between a viewer and other users, derived from the viewer's sets of follows, blocks and mutes."""

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial

from graph import keys
from graph.model import Relationship, new_relationship
from graph.store.commands import Command
from graph.store.store import Store
from graph.visibility.views import Exclusions, View, Visibility


class Relationships:
    """Derives relationships, which are not stored."""

    def __init__(self, store: Store, visibility: Visibility) -> None:
        self._store = store
        self._visibility = visibility

    def between(self, viewer: int, subjects: Sequence[int], view: View | None = None) -> Awaitable[list[Relationship]]:
        """Return the relationship between the viewer and each subject. One round trip of two commands.

        `view` is the viewer's view, which a request shares between its reads. If the view has not begun yet, this adds
        one command to the same round trip. Only keys of the viewer are read, so the cost does not depend on the
        subjects' followers.
        """
        view = view or self._visibility.of(viewer)
        exclusions = view.known_exclusions(subjects)
        if exclusions is None or not subjects:
            return self._after_exclusions(viewer, subjects, view)
        return self._store.ask(_scores(viewer, subjects), partial(as_relationships, viewer, subjects, exclusions))

    async def _after_exclusions(self, viewer: int, subjects: Sequence[int], view: View) -> list[Relationship]:
        if not subjects:
            return []
        view.begin(subjects)
        scores = await self._store.read(_scores(viewer, subjects))
        return as_relationships(viewer, subjects, await view.exclusions(subjects), scores)

    async def between_many(self, viewers: Sequence[int], subjects: Sequence[int]) -> list[list[Relationship]]:
        """Return for each viewer what `between` returns. One round trip of three commands for each viewer."""
        words = sorted(set(subjects))
        asked: list[Command] = [
            ("ZMSCORE", key(viewer), *subjects) for viewer in viewers for key in (keys.following, keys.followers)
        ]
        scores, exclusions = await asyncio.gather(
            self._store.read(asked), self._visibility.exclusions_of(viewers, words)
        )
        return [
            as_relationships(viewer, subjects, exclusions[place], scores[2 * place : 2 * place + 2])
            for place, viewer in enumerate(viewers)
        ]


def _scores(viewer: int, subjects: Sequence[int]) -> list[Command]:
    """Return the commands that read when the viewer followed each subject, and when each followed the viewer."""
    return [("ZMSCORE", key(viewer), *subjects) for key in (keys.following, keys.followers)]


def as_relationships(
    viewer: int, subjects: Sequence[int], exclusions: Exclusions, scores: Sequence[list[float | None]]
) -> list[Relationship]:
    """Return relationships from the subjects' scores in the viewer's following and followers sets."""
    following, followers = scores
    return [
        new_relationship(
            (
                viewer,
                subject,
                None if forth is None else int(forth),
                None if back is None else int(back),
                subject in exclusions.muting,
                subject in exclusions.blocking,
                subject in exclusions.blockers,
            )
        )
        for subject, forth, back in zip(subjects, following, followers, strict=True)
    ]
