"""What the server counts for a query: its points, and the bytes that its answer may have."""

from functools import cache

from graphql import GraphQLError, parse

from schema import schema
from server.operations.cost import CostAnalysis, OperationCost
from server.operations.weights import Weights

NOTHING = OperationCost(0, 0)


@cache
def weights() -> Weights:
    """Return the weights of the real schema."""
    return Weights(schema._schema)


def demand_of(text: str) -> OperationCost:
    """Return what a query without variables demands, as the server counts it; nothing if it cannot be read."""
    try:
        return CostAnalysis(weights(), parse(text), {}).of(None)
    except (GraphQLError, KeyError):
        return NOTHING
