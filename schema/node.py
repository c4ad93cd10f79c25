"""The interface of all types with a global id."""

import strawberry

from executor.fields import OfRecord


@strawberry.interface(description="An object with a global id. `Query.node` looks it up by that id.")
class Node(OfRecord):
    """The values of the implementing types are records of the graph."""

    id: strawberry.ID = strawberry.field(
        description="The global id. It is opaque, unique across all types, and never changes."
    )
