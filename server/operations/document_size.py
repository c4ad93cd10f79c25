"""The size of a document, measured in linear time before validation, which is slow for hostile documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

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


class Size(NamedTuple):
    """The size of a document, in which a fragment counts at each of its spreads."""

    levels: int = 0
    selections: int = 0
    aliases: int = 0
    directives: int = 0


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
        """Return the limits as a size."""
        return Size(self.depth, self.selections, self.aliases, self.directives)


LEAF = Size()


def measure(document: DocumentNode) -> Size:
    """Return the size of all operations and unused fragments together. O(nodes)."""
    fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
    measured: dict[str, Size] = {}
    sizes = []
    for node in document.definitions:
        if isinstance(node, OperationDefinitionNode):
            sizes.append(Size(directives=len(node.directives or ())))
            sizes.append(_of(node.selection_set, fragments, measured))
    sizes.extend(
        _of(fragment.selection_set, fragments, measured) for name, fragment in fragments.items() if name not in measured
    )
    levels, *counts = zip(*sizes, strict=True) if sizes else ((0,), (0,), (0,), (0,))
    return Size(max(levels), *(min(sum(count), COUNTED_TO) for count in counts))


def _of(
    selection_set: SelectionSetNode, fragments: Mapping[str, FragmentDefinitionNode], measured: dict[str, Size]
) -> Size:
    deepest = selections = aliases = directives = 0
    for node in selection_set.selections:
        selections += 1
        if node.directives:
            directives += len(node.directives)
        if isinstance(node, FieldNode):
            aliases += node.alias is not None
            inner = _of(node.selection_set, fragments, measured) if node.selection_set else LEAF
            levels = inner.levels + 1
        elif isinstance(node, FragmentSpreadNode):
            inner = _of_fragment(node.name.value, fragments, measured)
            levels = inner.levels
        elif isinstance(node, InlineFragmentNode):
            inner = _of(node.selection_set, fragments, measured)
            levels = inner.levels
        if levels > deepest:
            deepest = levels
        if inner is not LEAF:
            selections = min(selections + inner.selections, COUNTED_TO)
            aliases = min(aliases + inner.aliases, COUNTED_TO)
            directives = min(directives + inner.directives, COUNTED_TO)
    return Size(deepest, selections, aliases, directives)


def _of_fragment(name: str, fragments: Mapping[str, FragmentDefinitionNode], measured: dict[str, Size]) -> Size:
    if name not in measured and name in fragments:
        measured[name] = LEAF  # for fragments that spread themselves, which validation refuses
        measured[name] = _of(fragments[name].selection_set, fragments, measured)
    return measured.get(name, LEAF)


def excess(size: Size, limits: Size) -> str | None:
    """Return a message about the first limit that a document exceeds; None if it exceeds none."""
    for what, found, allowed in zip(Size._fields, size, limits, strict=True):
        if found > allowed:
            count = "too many" if found >= COUNTED_TO else f"{found:,}"
            return f"The document has {count} {what} with its fragments spread; the limit is {allowed:,}. Split it up."
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
