"""Relationships: how the viewer stands to people, computed from the viewer's own sets."""

from collections.abc import Sequence

from graph.model import Relationship, User
from resolvers import ids
from resolvers.context import Context


async def to_viewer(users: Sequence[User], context: Context) -> Sequence[Relationship | None]:
    """Tell how the viewer and people stand to each other; None for all if anonymous.

    One round trip with two commands, whatever the number of people.
    """
    if context.viewer is None:
        return [None] * len(users)
    return await context.loaders.relationships.load_many(user.id for user in users)


def global_ids(relationships: Sequence[Relationship], context: Context) -> list[str]:
    """Give relationships' global ids."""
    return [ids.encode(ids.Kind.RELATIONSHIP, each.viewer, each.subject) for each in relationships]
