"""GraphQL operations: who asks, what they may cost, and how they run."""
