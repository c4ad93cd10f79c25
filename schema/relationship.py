"""The relationship between the viewer and another user."""

from datetime import datetime
from typing import ClassVar

import strawberry

from executor.fields import batched
from graph import model
from resolvers import relationships
from resolvers.enums import RelationshipState
from schema.node import Node


@strawberry.type(
    description="The relationship between the viewer and another user, from the viewer's perspective. It is always up "
    "to date."
)
class Relationship(Node):
    """Backed by `graph.model.Relationship`."""

    record: ClassVar[type] = model.Relationship

    id: strawberry.ID = batched(
        relationships.global_ids,
        independent=True,
        description="The global id of the relationship between this viewer and this user.",
    )
    state: RelationshipState = strawberry.field(description="Who follows whom, as a single value.")
    following: bool = strawberry.field(description="Whether the viewer follows the user.")
    followed_by: bool = strawberry.field(description="Whether the user follows the viewer.")
    muting: bool = strawberry.field(
        description="Whether the viewer has muted the user. The viewer's home timeline and lists, and the public "
        "timeline, leave out the user's posts. The user is not notified of the mute."
    )
    blocking: bool = strawberry.field(description="Whether the viewer has blocked the user.")
    blocked_by: bool = strawberry.field(description="Whether the user has blocked the viewer.")
    following_since: datetime | None = strawberry.field(
        description="When the viewer started following the user. Null if the viewer does not follow the user."
    )
    followed_by_since: datetime | None = strawberry.field(
        description="When the user started following the viewer. Null if the user does not follow the viewer."
    )
