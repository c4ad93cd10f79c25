"""The size of a document, measured in linear time before validation, which is slow for hostile documents."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

COUNTED_TO = 1_000_000
MAX_ALIAS_LENGTH = 255
"""Characters. The response repeats an alias for each object and in the path of each error."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a document, in which a fragment counts at each of its spreads."""

    levels: int = 0
    selections: int = 0
    aliases: int = 0
    directives: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(
            max(self.levels, other.levels),
            min(self.selections + other.selections, COUNTED_TO),
            min(self.aliases + other.aliases, COUNTED_TO),
            min(self.directives + other.directives, COUNTED_TO),
        )


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The limits of a document. For all but `tokens`, a fragment counts at each of its spreads."""

    tokens: int = 2_000
    depth: int = 20
    selections: int = 1_000
    aliases: int = 100
    directives: int = 100

    @property
    def size(self) -> Size:
        """The limits as a size."""
        return Size(self.depth, self.selections, self.aliases, self.directives)


def measure(document: DocumentNode) -> Size:
    """Return the size of all operations and unused fragments together. O(nodes)."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    measured: dict[str, Size] = {}
    total = Size()
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            total += Size(directives=len(node.directives or ())) + _of(node.selection_set, fragments, measured)
    for name, fragment in fragments.items():
        if name not in measured:
            total += _of(fragment.selection_set, fragments, measured)
    return total


def _of(
    selection_set: SelectionSetNode | None,
    fragments: Mapping[str, FragmentDefinitionNode],
    measured: dict[str, Size],
) -> Size:
    total = Size()
    for node in selection_set.selections if selection_set else ():
        total += Size(selections=1, directives=len(node.directives or ()))
        if isinstance(node, FragmentSpreadNode):
            name = node.name.value
            if name not in measured and name in fragments:
                measured[name] = Size()  # for fragments that spread themselves, which validation refuses
                measured[name] = _of(fragments[name].selection_set, fragments, measured)
            total += measured.get(name, Size())
        elif isinstance(node, FieldNode):
            inner = _of(node.selection_set, fragments, measured)
            total += inner + Size(levels=inner.levels + 1, aliases=int(node.alias is not None))
        elif isinstance(node, InlineFragmentNode):
            total += _of(node.selection_set, fragments, measured)
    return total


def excess(size: Size, limits: Size) -> str | None:
    """Return a message about the first limit that a document exceeds; None if it exceeds none."""
    for field in fields(Size):
        found, allowed = getattr(size, field.name), getattr(limits, field.name)
        if found > allowed:
            count = "too many" if found >= COUNTED_TO else f"{found:,}"
            return (
                f"The document has {count} {field.name} with its fragments spread; the limit is {allowed:,}. "
                "Split it up."
            )
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
