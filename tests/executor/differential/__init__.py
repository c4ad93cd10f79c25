"""Generated schemas, documents and data, and the comparison of the executor's answers with graphql-core's."""
