"""How the viewer stands to a person."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import relationships
from resolvers.enums import RelationshipState
from schema.node import Node


@strawberry.type(
    description="How the viewer and another person stand to each other, seen from the viewer. "
    "It is computed when asked for, so it is always up to date."
)
class Relationship(Node):
    """Values are `graph.model.Relationship`."""

    record: ClassVar[type] = model.Relationship

    id: strawberry.ID = batched(relationships.global_ids, description="The global id, of this viewer and this person.")
    state: RelationshipState = strawberry.field(description="The relationship in one word.")
    following: bool = strawberry.field(description="Whether the viewer follows the person.")
    followed_by: bool = strawberry.field(description="Whether the person follows the viewer.")
    following_since: datetime | None = strawberry.field(
        description="Since when the viewer follows the person; null if not."
    )
    followed_by_since: datetime | None = strawberry.field(
        description="Since when the person follows the viewer; null if not."
    )
