"""GraphQL operations: callers, documents, costs, rate limits and execution."""
