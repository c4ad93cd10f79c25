"""Parsing of GraphQL documents with little memory."""

from graphql import DocumentNode, GraphQLSyntaxError, Source, Token
from graphql.language.parser import Parser


def parse_document(text: str, max_tokens: int, *, locations: bool = True) -> DocumentNode:
    """Return the parsed document. Raises GraphQLSyntaxError.

    graphql-core links the tokens of a document in both directions. This function removes the links, so that reference
    counting frees a document without a garbage collection.
    """
    source = Source(text)
    parser = Parser(source, no_location=not locations, max_tokens=max_tokens)
    try:
        return parser.parse_document()
    except RecursionError:
        raise GraphQLSyntaxError(source, 0, "The document is nested too deeply.") from None
    finally:
        token: Token | None = parser._lexer.token
        while token is not None and token.next is not None:
            token = token.next
        while token is not None:
            previous = token.prev
            token.prev = token.next = None
            token = previous
