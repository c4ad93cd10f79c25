"""The playground: GraphiQL with example operations."""
