"""Relationships: how the viewer stands to people, computed from the viewer's own sets."""

from collections.abc import Awaitable, Sequence

from graph.model import Relationship
from resolvers import ids
from resolvers.context import Context
from resolvers.references import Identified


def to_viewer(
    users: Sequence[Identified], context: Context
) -> Awaitable[Sequence[Relationship | None]] | Sequence[Relationship | None]:
    """Tell how the viewer and people stand to each other; None for all if anonymous.

    One round trip with two commands, whatever the number of people.
    """
    if context.viewer is None:
        return [None] * len(users)
    return context.loaders.relationships.load_many([user.id for user in users])


def global_ids(relationships: Sequence[Relationship], context: Context) -> list[str]:
    """Give relationships' global ids."""
    return [ids.encode(ids.Kind.RELATIONSHIP, each.viewer, each.subject) for each in relationships]
