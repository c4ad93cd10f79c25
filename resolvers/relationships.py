"""The resolvers of relationships."""

from collections.abc import Awaitable, Sequence

from graph.model import Relationship
from resolvers import ids
from resolvers.context import Context
from resolvers.references import Identified


def to_viewer(
    users: Sequence[Identified], context: Context
) -> Awaitable[Sequence[Relationship | None]] | Sequence[Relationship | None]:
    """Return the relationships between the viewer and users; None for anonymous requests.

    One round trip with two commands, regardless of the number of users.
    """
    if context.viewer is None:
        return [None] * len(users)
    return context.loaders.relationships.fetch_many([user.id for user in users])


async def to_viewers(
    users: Sequence[Identified], contexts: Sequence[Context]
) -> Sequence[Sequence[Relationship | None]]:
    """Return for each context the relationships between its viewer and users; None for anonymous requests.

    One round trip, regardless of the number of viewers.
    """
    viewers = {context.viewer.user: context for context in contexts if context.viewer is not None}
    if not viewers:
        return [[None] * len(users) for _ in contexts]
    graph = contexts[0].graph
    found = await graph.relationships.between_many(list(viewers), [user.id for user in users])
    by_viewer = dict(zip(viewers, found, strict=True))
    return [[None] * len(users) if context.viewer is None else by_viewer[context.viewer.user] for context in contexts]


def global_ids(relationships: Sequence[Relationship], context: Context) -> list[str]:
    """Return the global ids of relationships."""
    return [ids.encode(ids.Kind.RELATIONSHIP, each.viewer, each.subject) for each in relationships]
