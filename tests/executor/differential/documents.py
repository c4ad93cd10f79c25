"""Generated documents: valid for a schema by construction, with everything that GraphQL allows in a selection.

A response key means the same field with the same arguments everywhere in a document, so that selections with the same
key can always be merged. Only keys that begin with `mine` differ between object types.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_composite_type,
    is_leaf_type,
    is_required_argument,
)

from tests.executor.differential.inputs import Inputs, Preferred, Used, nothing_preferred
from tests.executor.differential.tapes import Tape

INDENT = "  "


@dataclass(frozen=True)
class GeneratedDocument:
    """A document, its variables and the operation to run."""

    text: str
    operation_name: str | None
    variables: dict[str, Any]


@dataclass
class Fragment:
    """A fragment of the document: its type and its variables."""

    name: str
    type: Any
    variables: set[str]


@dataclass(frozen=True)
class Meaning:
    """The field and arguments of a response key. Fields of different types are the same if their signatures are."""

    field: str
    signature: str
    arguments: Used


class DocumentWriter:
    """Writes a document from a tape, `depth` selections deep, with about the given number of fields.

    `wanted` is the probability of an optional argument, in percent. Unless `free`, there are only queries, without
    invalid values.
    """

    def __init__(
        self,
        schema: GraphQLSchema,
        tape: Tape,
        preferred: Preferred = nothing_preferred,
        *,
        depth: int = 4,
        fields: int = 14,
        free: bool = True,
        wanted: Mapping[str, int] | None = None,
    ) -> None:
        self._schema = schema
        self._tape = tape
        self._inputs = Inputs(tape, preferred, free=free)
        self._free = free
        self._wanted = wanted or {}
        self._depth = depth
        self._left = fields
        self._keys: dict[str, Meaning] = {}
        self._mine: dict[tuple[str, str], Meaning] = {}
        self._shapes: dict[str, str] = {}
        self._fragments: list[Fragment] = []
        self._texts: list[str] = []
        self._scopes: list[set[str]] = []

    def write(self) -> GeneratedDocument:
        """Return a document with its variables and the operation to run."""
        count = 2 if self._tape.chance(15) else 1
        operations = [
            self._operation(f"Run{index}" if count > 1 or self._tape.chance(50) else "") for index in range(count)
        ]
        name = "Run0" if count > 1 else None
        if self._free and self._tape.chance(10):
            name = self._tape.pick(("Run0", "Run1", "Nobody", None))
        texts = [*operations, *self._texts]
        if self._tape.chance(30):
            texts.reverse()
        return GeneratedDocument("\n".join(texts), name, self._inputs.values())

    def _operation(self, name: str) -> str:
        kind, root = "query", self._schema.query_type
        if self._free and self._schema.mutation_type and self._tape.chance(30):
            kind, root = "mutation", self._schema.mutation_type
        with self._scope() as used:
            body = self._selection(root, 0)
        declared = ", ".join(str(self._inputs.variables[each]) for each in sorted(used))
        if kind == "query" and not name and not declared and self._tape.chance(50):
            return body
        return f"{kind} {name}{f'({declared})' if declared else ''} {body}"

    @contextmanager
    def _scope(self) -> Iterator[set[str]]:
        self._scopes.append(set())
        yield self._scopes[-1]
        self._scopes.pop()

    def _selection(self, type_: Any, depth: int) -> str:
        inner = INDENT * (depth + 1)
        count = 1 + self._tape.below(4)
        lines = [f"{inner}{self._selected(type_, depth)}" for _ in range(count)]
        return "{\n" + "\n".join(lines) + f"\n{INDENT * depth}}}"

    def _selected(self, type_: Any, depth: int) -> str:
        self._left -= 1
        way = self._tape.below(100) if self._left > 0 else 0
        if way >= 94:
            return f"{'its_type: ' * self._tape.below(2)}__typename{self._directives()}"
        if way >= 87:
            return f"...{self._directives()} {self._selection(type_, depth + 1)}"
        if way >= 77:
            narrower = self._tape.pick(self._overlapping(type_))
            return f"... on {narrower}{self._directives()} {self._selection(narrower, depth + 1)}"
        if way >= 66:
            return f"...{self._fragment(type_, depth).name}{self._directives()}"
        return self._field(type_, depth)

    def _directives(self) -> str:
        if not self._tape.chance(14):
            return ""
        names = self._tape.pick((("include",), ("skip",), ("skip", "include"), ("include", "skip")))
        return "".join(f" @{name}(if: {self._written(self._inputs.condition())})" for name in names)

    def _written(self, used: Used) -> str:
        self._scopes[-1].update(used.variables)
        return used.text

    def _overlapping(self, type_: Any) -> list[Any]:
        """Return the types that a fragment in a selection of this type can have, the type itself first."""
        own = self._possible(type_)
        others = [
            each
            for name, each in self._schema.type_map.items()
            if is_composite_type(each)
            and each is not type_
            and not name.startswith("__")
            and own & self._possible(each)
        ]
        return [type_, *others]

    def _possible(self, type_: Any) -> set[str]:
        types = self._schema.get_possible_types(type_) if is_abstract_type(type_) else [type_]
        return {each.name for each in types}

    def _fragment(self, type_: Any, depth: int) -> Fragment:
        """Return a fragment that fits, writing a new one if necessary."""
        overlapping = self._overlapping(type_)
        fitting = [fragment for fragment in self._fragments if fragment.type in overlapping]
        if fitting and (self._tape.chance(60) or self._left <= 0):
            fragment = self._tape.pick(fitting)
        else:
            on = self._tape.pick(overlapping)
            with self._scope() as used:
                body = self._selection(on, max(depth, 1))
            fragment = Fragment(f"Part{len(self._fragments)}", on, used)
            self._fragments.append(fragment)
            self._texts.append(f"fragment {fragment.name} on {on} {body}")
        self._scopes[-1].update(fragment.variables)
        return fragment

    def _field(self, type_: Any, depth: int) -> str:
        deep = depth < self._depth and self._left > 0
        fields = getattr(type_, "fields", {})
        leaves = [name for name, field in fields.items() if is_leaf_type(get_named_type(field.type))]
        branches = [name for name, field in fields.items() if name not in leaves]
        choices = branches if deep and branches and (self._tape.chance(55) or not leaves) else leaves
        if not choices:
            return "__typename"
        name = self._tape.pick(choices)
        field = fields[name]
        if isinstance(type_, GraphQLObjectType) and name in leaves and self._tape.chance(8):
            mine = self._own_key(type_, name, field)
            if mine is not None:
                return f"{mine}{self._directives()}"
        text = f"{self._key(name, field)}{self._directives()}"
        return text if name in leaves else f"{text} {self._selection(get_named_type(field.type), depth + 1)}"

    def _key(self, name: str, field: GraphQLField) -> str:
        """Return the response key of a field and its arguments."""
        wanted = name, signature_of(field)
        known = [key for key, meaning in self._keys.items() if (meaning.field, meaning.signature) == wanted]
        if known and self._tape.chance(70):
            key = self._tape.pick(known)
        else:
            key = name if name not in self._keys else f"{name}_{len(self._keys)}"
            self._keys[key] = Meaning(*wanted, self._arguments(field))
        return self._asked(key, self._keys[key])

    def _own_key(self, type_: GraphQLObjectType, name: str, field: GraphQLField) -> str | None:
        """Return a key that is specific to this object type, if its shape fits."""
        key = f"mine{self._tape.below(2)}"
        if self._shapes.setdefault(key, str(field.type)) != str(field.type):
            return None
        if (key, type_.name) not in self._mine:
            self._mine[key, type_.name] = Meaning(name, signature_of(field), self._arguments(field))
        return self._asked(key, self._mine[key, type_.name])

    def _asked(self, key: str, meaning: Meaning) -> str:
        alias = "" if key == meaning.field else f"{key}: "
        return f"{alias}{meaning.field}{self._written(meaning.arguments)}"

    def _arguments(self, field: GraphQLField) -> Used:
        given = []
        for name, argument in field.args.items():
            if is_required_argument(argument) or self._tape.chance(self._wanted.get(name, 65)):
                used = self._inputs.literal(name, argument.type, default=argument.default is not None)
                given.append((f"{name}: {used.text}", used.variables))
        text = f"({', '.join(each for each, _ in given)})" if given else ""
        return Used(text, set().union(*(variables for _, variables in given)))


def signature_of(field: GraphQLField) -> str:
    """Return the arguments of a field with their types, and its own type."""
    return f"({', '.join(f'{name}: {argument.type}' for name, argument in field.args.items())}): {field.type}"
