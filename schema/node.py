"""The interface of everything that has a global id."""

import strawberry

from executor.fields import OfRecord


@strawberry.interface(description="Anything with a global id, which `node` finds again.")
class Node(OfRecord):
    """Its types' values are records of the graph."""

    id: strawberry.ID = strawberry.field(description="The global id: opaque, unique across all types, stable for ever.")
