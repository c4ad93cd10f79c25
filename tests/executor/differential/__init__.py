"""Generated schemas, documents and data, and the comparison of the executor with graphql-core."""
