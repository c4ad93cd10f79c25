"""Valid and invalid values for arguments and variables, as JSON and as GraphQL literals."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    is_required_input_field,
)

from tests.executor.differential.tapes import Tape

LEAVES: Mapping[str, tuple[Any, ...]] = {
    "Int": (1, 0, -7, 2_147_483_647),
    "Float": (1.5, 2, -0.25),
    "String": ("word", "", 'a "quote"\n', "北京"),
    "Boolean": (True, False),
    "ID": ("a", "7", 3),
    "DateTime": ("2026-01-02T03:04:05.678Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999999-12:00"),
}
FREE = (1, "free", [1, [2]], {"a": {"b": 2.5}}, True)
BAD = ("bad", 1.5, True, {"nobody": 1}, [[None]], 2**40)
BOOLEAN = GraphQLNonNull(GraphQLBoolean)
Preferred = Callable[[str, Any, Tape], Any]


@dataclass(frozen=True)
class Use:
    """A use of a variable as a value."""

    variable: str


@dataclass
class Variable:
    """A variable declaration: its type, and its default as a literal if it has one."""

    name: str
    type: Any
    default: str | None

    def __str__(self) -> str:
        return f"${self.name}: {self.type}" + ("" if self.default is None else f" = {self.default}")


@dataclass
class Used:
    """A literal and its variables."""

    text: str
    variables: set[str]


def nothing_preferred(name: str, type_: Any, tape: Tape) -> Any:
    """Return None: no value is preferred for any argument."""
    return None


class Inputs:
    """Makes values for arguments. The variables in them are added to `variables`.

    `preferred(argument, type, tape)` returns a value that matches the data, or None. Unless `free`, values are neither
    null nor invalid where this can be avoided.
    """

    def __init__(self, tape: Tape, preferred: Preferred = nothing_preferred, *, free: bool = True) -> None:
        self._tape = tape
        self._preferred = preferred
        self._free = free
        self.variables: dict[str, Variable] = {}

    def literal(self, name: str, type_: Any, *, default: bool = False) -> Used:
        """Return a literal for an argument of this type. `default` is True if the argument has a default."""
        used: set[str] = set()
        value = self._value(name, type_, used, variables=True, default=default)
        return Used(written(value, type_), used)

    def condition(self) -> Used:
        """Return the condition of `@skip` or `@include`."""
        return self.literal("if", BOOLEAN) if self._tape.chance(60) else Used(self._tape.pick(("true", "false")), set())

    def values(self) -> dict[str, Any]:
        """Return values for the variables: valid, invalid, null or missing."""
        values: dict[str, Any] = {}
        for variable in self.variables.values():
            demanded = isinstance(variable.type, GraphQLNonNull)
            fate = self._tape.below(100)
            if not self._free:
                values[variable.name] = self._value(variable.name.split("_")[0], variable.type, set())
            elif fate >= 98:
                values[variable.name] = self._tape.pick(BAD)
            elif fate < 72 or (demanded and fate < 97):
                values[variable.name] = self._value(variable.name.split("_")[0], variable.type, set())
            elif fate < 90:
                values[variable.name] = None
        return values

    def _variable(self, name: str, type_: Any, *, default: bool) -> Use | None:
        """Return a variable for a position, declaring a new one if none fits."""
        tape = self._tape
        if isinstance(type_, GraphQLNonNull) and tape.chance(40):
            declared = Variable("", type_.of_type, written(self._value(name, type_, set()), type_))
        elif isinstance(type_, GraphQLNonNull) and default and tape.chance(60):
            declared = Variable("", type_.of_type, None)
        elif isinstance(type_, GraphQLNonNull) or tape.chance(60):
            declared = Variable("", type_, None)
        else:
            declared = Variable("", type_, written(self._value(name, type_, set()), type_))
        for known in self.variables.values():
            if (str(known.type), known.default) == (str(declared.type), declared.default):
                return Use(known.name)
        if len(self.variables) >= 6:
            return None
        declared.name = f"{name}_{len(self.variables)}"
        self.variables[declared.name] = declared
        return Use(declared.name)

    def _value(self, name: str, type_: Any, used: set[str], *, variables: bool = False, default: bool = False) -> Any:
        tape = self._tape
        if variables and tape.chance(35):
            use = self._variable(name, type_, default=default)
            if use is not None:
                used.add(use.variable)
                return use
        if isinstance(type_, GraphQLNonNull):
            type_ = type_.of_type
        elif self._free and tape.chance(10):
            return None
        preferred = self._preferred(name, type_, tape)
        if preferred is not None:
            return preferred
        if isinstance(type_, GraphQLList):
            item = type_.of_type
            if tape.chance(15):
                return self._value(name, item, used, variables=False) if isinstance(item, GraphQLNonNull) else []
            return [self._value(name, item, used, variables=variables) for _ in range(tape.below(3))]
        if isinstance(type_, GraphQLInputObjectType):
            return {
                key: self._value(key, field.type, used, variables=variables, default=field.default is not None)
                for key, field in type_.fields.items()
                if (is_required_input_field(field) or tape.chance(30))
            }
        if isinstance(type_, GraphQLEnumType):
            return tape.pick(tuple(type_.values))
        return tape.pick(LEAVES.get(type_.name, FREE))


def written(value: Any, type_: Any) -> str:
    """Return a value as a GraphQL literal."""
    if isinstance(value, Use):
        return f"${value.variable}"
    if isinstance(type_, GraphQLNonNull):
        return written(value, type_.of_type)
    if isinstance(value, list):
        item = type_.of_type if isinstance(type_, GraphQLList) else None
        return f"[{', '.join(written(each, item) for each in value)}]"
    if isinstance(type_, GraphQLList):
        return written(value, type_.of_type)
    if isinstance(value, dict):
        fields = type_.fields if isinstance(type_, GraphQLInputObjectType) else {}
        inner = (f"{key}: {written(each, fields[key].type if key in fields else None)}" for key, each in value.items())
        return f"{{{', '.join(inner)}}}"
    if isinstance(type_, GraphQLEnumType) and isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
