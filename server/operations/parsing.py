"""Parsing of GraphQL documents with little memory and time, and measurement of their sizes.

Documents are measured in linear time before they are validated, because validation is slow for hostile documents.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSyntaxError,
    InlineFragmentNode,
    Lexer,
    OperationDefinitionNode,
    SelectionSetNode,
    Source,
    Token,
    TokenKind,
)
from graphql.language.parser import Parser

PUNCTUATORS = {kind.value: kind for kind in TokenKind if len(kind.value) == 1}
SURROGATES = "\ud800-\udfff"
TOKEN = re.compile(
    r"([ \t,\ufeff\n\r]*)"
    r"(?:([_A-Za-z][_0-9A-Za-z]*)"
    rf'|"(?!"")([^"\\\n\r{SURROGATES}]*)"'
    r"|([!$&():=@\[\]{|}]))"
)
"""Ignored characters, then a name, a string without escapes, or a punctuator."""
COMMENT = re.compile(rf"[^\n\r{SURROGATES}]*")
COUNTED_TO = 1_000_000
MAX_ALIAS_LENGTH = 255
"""In characters. The response repeats an alias for each object and in the path of each error."""


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
        """Advance the line number and the start of the line past ignored text."""
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
    """Return the parsed document. Raises GraphQLSyntaxError if it is invalid, too deep, or exceeds `max_tokens`.

    graphql-core links the tokens of a document in both directions. This function removes the links, so that reference
    counting frees a document without a garbage collection.
    """
    source = Source(text)
    parser = Parser(source, no_location=not locations, max_tokens=max_tokens, lexer=FastLexer(source))
    try:
        return parser.parse_document()
    except RecursionError:
        raise GraphQLSyntaxError(source, 0, "The document is nested too deeply. Reduce its nesting.") from None
    finally:
        token: Token | None = parser._lexer.token
        while token is not None and token.next is not None:
            token = token.next
        while token is not None:
            previous = token.prev
            token.prev = token.next = None
            token = previous


class Size(NamedTuple):
    """The size of a document. The contents of a fragment are counted once for each spread."""

    levels: int = 0
    selections: int = 0
    aliases: int = 0
    directives: int = 0


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The limits of a document. For all limits but `tokens`, a fragment is counted once for each spread."""

    tokens: int = 2_000
    depth: int = 20
    selections: int = 1_000
    aliases: int = 100
    directives: int = 100

    @property
    def size(self) -> Size:
        """All limits but `tokens`, as a size."""
        return Size(self.depth, self.selections, self.aliases, self.directives)


LEAF = Size()


def measure(document: DocumentNode) -> Size:
    """Return the sums for all operations and unused fragments; `levels` is the depth of the deepest. O(nodes)."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    measured: dict[str, Size] = {}
    sizes = []
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            sizes.append(Size(directives=len(node.directives or ())))
            sizes.append(_size_of(node.selection_set, fragments, measured))
    sizes.extend(
        _size_of(fragment.selection_set, fragments, measured)
        for name, fragment in fragments.items()
        if name not in measured
    )
    levels, *counts = zip(*sizes, strict=True) if sizes else ((0,), (0,), (0,), (0,))
    return Size(max(levels), *(min(sum(count), COUNTED_TO) for count in counts))


def _size_of(
    selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode], measured: dict[str, Size]
) -> Size:
    deepest = selections = aliases = directives = 0
    for node in selection_set.selections:
        selections += 1
        if node.directives:
            directives += len(node.directives)
        if isinstance(node, FieldNode):
            aliases += node.alias is not None
            inner = _size_of(node.selection_set, fragments, measured) if node.selection_set else LEAF
            levels = inner.levels + 1
        elif isinstance(node, FragmentSpreadNode):
            inner = _size_of_fragment(node.name.value, fragments, measured)
            levels = inner.levels
        elif isinstance(node, InlineFragmentNode):
            inner = _size_of(node.selection_set, fragments, measured)
            levels = inner.levels
        if levels > deepest:
            deepest = levels
        if inner is not LEAF:
            selections = min(selections + inner.selections, COUNTED_TO)
            aliases = min(aliases + inner.aliases, COUNTED_TO)
            directives = min(directives + inner.directives, COUNTED_TO)
    return Size(deepest, selections, aliases, directives)


def _size_of_fragment(name: str, fragments: Mapping[str, FragmentDefinitionNode], measured: dict[str, Size]) -> Size:
    if name not in measured and name in fragments:
        measured[name] = LEAF  # for fragments that spread themselves, which validation refuses
        measured[name] = _size_of(fragments[name].selection_set, fragments, measured)
    return measured.get(name, LEAF)


def excess(size: Size, limits: Size) -> str | None:
    """Return a message about the first limit that a document exceeds, or None if it exceeds none."""
    for what, found, allowed in zip(Size._fields, size, limits, strict=True):
        if found > allowed:
            count = "too many" if found >= COUNTED_TO else f"{found:,}"
            return f"The document has {count} {what} with fragments expanded; the limit is {allowed:,}. Split it up."
    return None


def longest_alias(document: DocumentNode) -> int:
    """Return the length of the longest alias, in characters. O(nodes)."""
    longest = 0
    waiting = [
        node for node in document.definitions if isinstance(node, OperationDefinitionNode | FragmentDefinitionNode)
    ]
    sets = [node.selection_set for node in waiting]
    while sets:
        for node in sets.pop().selections:
            if isinstance(node, FieldNode) and node.alias is not None:
                longest = max(longest, len(node.alias.value))
            inner = getattr(node, "selection_set", None)
            if inner is not None:
                sets.append(inner)
    return longest
