"""The values of generated fields: valid values, and everything that a faulty resolver can return instead.

A value is a pure function of the run's seed, the field, the parent and the arguments, so neither the order nor the
number of calls matters.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zlib import crc32

from graphql import (
    GraphQLError,
    GraphQLList,
    GraphQLNonNull,
    GraphQLOutputType,
    GraphQLResolveInfo,
    Undefined,
    is_composite_type,
)

from tests.executor.differential.things import FORMS, Identity, seed_of

NUMBERS = 5
NOT_LISTS: tuple[Any, ...] = ("letters", 7, {"a": "mapping"}, b"bytes", Decimal(1))
NOT_THINGS: tuple[Any, ...] = ("a word", 0, True, (), [], {}, 1.5)
RIGHT: Mapping[str, Sequence[Any]] = {
    "Int": (7, 0, -1, True, "12", 3.0, 2_147_483_647, Decimal(4)),
    "Float": (1.5, 2, -0.0, "3.5", True, Decimal("0.5"), 1e300),
    "String": ("text", "", 5, True, 2.5, "ünïcødé 北京", Decimal(1)),
    "Boolean": (True, False, 1, 0.0, Decimal(0)),
    "ID": ("a1", 4, 4.0, "", Decimal(2)),
    "Shade": (1, "dim", (2, 3)),
    "Odd": (1, "any", 2.5, [1, {"deep": None}], False, float("nan")),
}
WRONG: Mapping[str, Sequence[Any]] = {
    "Int": ("x", 1.5, float("nan"), 2**40, "", [1], float("inf"), {}, -(2**31) - 1),
    "Float": (float("nan"), "x", float("inf"), 10**400, [], ""),
    "String": ([1], {"a": 1}, b"bytes", float("nan"), object),
    "Boolean": ("yes", float("nan"), [], b""),
    "ID": (1.5, True, [1], float("inf")),
    "Shade": ("DARK", 99, [], None.__class__, 1.5),
    "Odd": ("raise", "error_with_extensions", "none", "undefined"),
}


class MessageError(Exception):
    """An exception with its message in an attribute."""

    def __init__(self, message: str) -> None:
        super().__init__("what str() gives")
        self.message = message


class ExtendedError(Exception):
    """An exception with extensions, which appear in the GraphQL error."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.extensions = {"code": message}


def error_with_extensions(message: str) -> GraphQLError:
    """Return a GraphQL error with extensions."""
    return GraphQLError(message, extensions={"code": "GONE"})


def error_with_path(message: str) -> GraphQLError:
    """Return a GraphQL error that already has a path."""
    return GraphQLError(message, path=["some", "where"])


EXCEPTIONS: Sequence[Callable[[str], Exception]] = (
    LookupError,
    ValueError,
    error_with_extensions,
    MessageError,
    ExtendedError,
    error_with_path,
    TypeError,
)


class Roll:
    """A stream of numbers that depends only on its seed."""

    def __init__(self, seed: str) -> None:
        self._state = crc32(seed.encode())

    def below(self, bound: int) -> int:
        """Return the next number: at least 0, and below the bound."""
        self._state = (self._state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
        return (self._state >> 8) % bound

    def pick(self, options: Sequence[Any]) -> Any:
        """Return one of several values."""
        return options[self.below(len(options))]


@dataclass(frozen=True)
class FieldPlan:
    """The behaviour of a generated field: its type, its possible faults at each level, and its kind of resolver.

    With `shared_failure`, all parents can get the same exception, which a batch resolver raises.
    """

    name: str
    type: GraphQLOutputType
    faults: tuple[str, ...]
    realisation: str
    shared_failure: bool


@dataclass(frozen=True)
class Layout:
    """The parts of a schema that data depends on: fields, forms of objects, members of abstract types."""

    plans: Mapping[str, FieldPlan]
    forms: Mapping[str, str]
    members: Mapping[str, Sequence[str]]


class World:
    """The data of one run. With `live`, resolvers are of all kinds; otherwise all are synchronous."""

    def __init__(self, salt: int, layout: Layout, *, live: bool) -> None:
        self.salt = salt
        self.live = live
        self._plans = layout.plans
        self._forms = layout.forms
        self._members = layout.members
        self._things: dict[Identity, Any] = {}

    def thing(self, identity: Identity) -> Any:
        """Return the object with this identity: always the same one, if its form has identity."""
        form = self._forms.get(identity.kind, "record")
        if form == "value":
            return FORMS[form](identity, self.attribute)
        if identity not in self._things:
            self._things[identity] = FORMS[form](identity, self.attribute)
        return self._things[identity]

    def attribute(self, identity: Identity, name: str) -> Any:
        """Return an object's attribute, as a function if the field has arguments, or None if there is none."""
        plan = self._plans.get(name)
        if plan is None or plan.realisation not in ("attribute", "method"):
            return None
        seed = f"{identity.kind} {identity.number}"
        if plan.realisation == "attribute":
            answer = self._answer(plan, seed, {}, None)
            return list(answer) if isinstance(answer, Iterator) else answer
        return lambda info, **arguments: self._answer(plan, seed, arguments, info)

    def answer(self, plan: FieldPlan, parent: object, arguments: Mapping[str, Any], info: Any = None) -> Any:
        """Return a field's value for one parent. An exception means failure."""
        return self._answer(plan, seed_of(parent), arguments, info)

    def fails_for_all(self, plan: FieldPlan, arguments: Mapping[str, Any]) -> Exception | None:
        """Return the exception that a batch resolver raises for all parents, or None."""
        roll = Roll(f"{self.salt} all {plan.name} {arguments!r}")
        return ValueError(f"{plan.name} fails for all") if plan.shared_failure and roll.below(3) == 0 else None

    def _answer(
        self, plan: FieldPlan, seed: str, arguments: Mapping[str, Any], info: GraphQLResolveInfo[Any] | None
    ) -> Any:
        failure = self.fails_for_all(plan, arguments)
        if failure is not None:
            return failure
        roll = Roll(f"{self.salt} {seed} {plan.name} {sorted(arguments.items())!r}")
        if info is not None and str(plan.type) in ("String", "String!") and roll.below(3) == 0:
            return description_of(info)
        if arguments and str(plan.type) in ("String", "String!") and roll.below(3):
            return repr(sorted(arguments.items()))
        return self._value(plan, plan.type, roll, f"{plan.name} of {seed}")

    def _value(self, plan: FieldPlan, type_: GraphQLOutputType, roll: Roll, label: str) -> Any:
        if isinstance(type_, GraphQLNonNull):
            type_ = type_.of_type
        fault = roll.pick(plan.faults)
        if fault == "null":
            return roll.pick((None, None, Undefined))
        if fault == "error":
            return roll.pick(EXCEPTIONS)(f"no {label}")
        if isinstance(type_, GraphQLList):
            if fault == "wrong":
                return roll.pick(NOT_LISTS)
            lengths = (1, 2, 0, 3) if not is_composite_type(type_.of_type) else (1, 2, 0, 2)
            items = [self._value(plan, type_.of_type, roll, f"{label} {n}") for n in range(roll.pick(lengths))]
            return failing_iterator(items, label) if fault == "failing_iterator" else shaped(items, roll)
        if is_composite_type(type_):
            return self._thing(plan, type_, roll, wrong=fault == "wrong")
        return roll.pick((WRONG if fault == "wrong" else RIGHT)[str(type_)])

    def _thing(self, plan: FieldPlan, type_: Any, roll: Roll, *, wrong: bool) -> Any:
        if wrong and roll.below(2):
            return roll.pick(NOT_THINGS)
        kinds = sorted(self._forms)
        kind = roll.pick(kinds if wrong else self._members.get(type_.name, [type_.name]))
        claim = roll.pick((kind, None, "Nobody", "Shade", "raise", 5, *kinds, *kinds)) if wrong else kind
        return self.thing(Identity(kind, roll.below(NUMBERS), claim))


def description_of(info: GraphQLResolveInfo[Any]) -> str:
    """Return everything that a resolver receives, as text."""
    nodes = [node.loc.start for node in info.field_nodes if node.loc]
    return (
        f"{info.field_name} {info.path.as_list()} {info.path.typename} {info.parent_type} {info.return_type} {nodes} "
        f"{info.operation.operation.value} {sorted(info.fragments)} {sorted(info.variable_values.coerced.items())!r}"
    )


def failing_iterator(items: list[Any], label: str) -> Iterator[Any]:
    """Yield items, then raise an error."""
    yield from items
    raise LookupError(f"the rest of {label} is lost")


def shaped(items: list[Any], roll: Roll) -> Iterable[Any]:
    """Return items in one of the shapes that a list can have."""
    shape = roll.pick((list, list, list, tuple, deque, iter))
    return items if shape is list else shape(items)
