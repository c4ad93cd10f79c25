"""Parsing of GraphQL documents with little memory and time."""

import re

from graphql import DocumentNode, GraphQLSyntaxError, Lexer, Source, Token, TokenKind
from graphql.language.parser import Parser

PUNCTUATORS = {kind.value: kind for kind in TokenKind if len(kind.value) == 1}
SURROGATES = "\ud800-\udfff"
TOKEN = re.compile(
    r"([ \t,\ufeff\n\r]*)"
    r"(?:([_A-Za-z][_0-9A-Za-z]*)"
    rf'|"(?!"")([^"\\\n\r{SURROGATES}]*)"'
    r"|([!$&():=@\[\]{|}]))"
)
"""What is ignored, then a name, a string without escapes, or a punctuator."""
COMMENT = re.compile(rf"[^\n\r{SURROGATES}]*")


class FastLexer(Lexer):
    """A lexer that reads most tokens with a regular expression, and leaves the others to graphql-core."""

    def read_next_token(self, start: int) -> Token:
        """Return the token after a position. Raises GraphQLSyntaxError."""
        found = TOKEN.match(self.source.body, start)
        if found is None:
            return super().read_next_token(start)
        if found.end(1) > start:
            self._skip(start, found[1])
        group = found.lastindex or 0
        text, at, end = found[group], found.end(1), found.end()
        column = 1 + at - self.line_start
        if group == 2:
            return Token(TokenKind.NAME, at, end, self.line, column, text)
        if group == 3:
            return Token(TokenKind.STRING, at, end, self.line, column, text)
        return Token(PUNCTUATORS[text], at, end, self.line, column)

    def _skip(self, start: int, ignored: str) -> None:
        """Count the lines in ignored text."""
        last = max(ignored.rfind("\n"), ignored.rfind("\r"))
        if last >= 0:
            self.line += ignored.count("\n") + ignored.count("\r") - ignored.count("\r\n")
            self.line_start = start + last + 1

    def read_comment(self, start: int) -> Token:
        """Return the comment at a position. Lone surrogates end it, as in graphql-core."""
        found = COMMENT.match(self.source.body, start + 1)
        end = found.end() if found else start + 1
        return self.create_token(TokenKind.COMMENT, start, end, self.source.body[start + 1 : end])


def parse_document(text: str, max_tokens: int, *, locations: bool = True) -> DocumentNode:
    """Return the parsed document. Raises GraphQLSyntaxError.

    graphql-core links the tokens of a document in both directions. This function removes the links, so that reference
    counting frees a document without a garbage collection.
    """
    source = Source(text)
    parser = Parser(source, no_location=not locations, max_tokens=max_tokens, lexer=FastLexer(source))
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
