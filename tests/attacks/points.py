"""The server's estimate of a query: its points, and the maximum size of its response."""

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
    """Return the cost of a query without variables, or zero if the query cannot be parsed."""
    try:
        return CostAnalysis(weights(), parse(text), {}).of(None)
    except (GraphQLError, KeyError):
        return NOTHING
