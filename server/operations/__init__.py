"""GraphQL operations: their callers, documents, costs, rate limits and execution."""
