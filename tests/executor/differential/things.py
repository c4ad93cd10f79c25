"""The objects of generated data, in every form that a resolver can return."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Attributes = Callable[["Identity", str], Any]


class Identity(NamedTuple):
    """The identity of an object: the name of its type, its number, and the type that it claims to have, if any."""

    kind: str
    number: int
    claim: str | None


class Record:
    """An object with attributes and `__typename`, equal only to itself."""

    def __init__(self, identity: Identity, attributes: Attributes) -> None:
        self.identity = identity
        self._attributes = attributes
        self.__typename = identity.claim

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._attributes(self.identity, name)


@dataclass(frozen=True)
class Value:
    """An object with attributes, created anew each time and equal to others with the same identity."""

    identity: Identity
    attributes: Attributes

    def __getattr__(self, name: str) -> Any:
        if name == "_Value__typename":
            return self.identity.claim
        if name.startswith("_"):
            raise AttributeError(name)
        return self.attributes(self.identity, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


class Entry(Mapping[str, Any]):
    """A mapping that is not a dictionary."""

    def __init__(self, identity: Identity, attributes: Attributes) -> None:
        self.identity = identity
        self._attributes = attributes

    def __getitem__(self, name: str) -> Any:
        return self.identity.claim if name == "__typename" else self._attributes(self.identity, name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


class Document(dict[str, Any]):
    """A dictionary, which is unhashable. Its items are computed on access."""

    def __init__(self, identity: Identity, attributes: Attributes) -> None:
        super().__init__(__typename=identity.claim)
        self.identity = identity
        self._attributes = attributes

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]

    def __missing__(self, name: str) -> Any:
        return self._attributes(self.identity, name)


def pair(identity: Identity, attributes: Attributes) -> tuple[str, Identity]:
    """Return an object that is a plain tuple, without attributes."""
    return ("thing", identity)


@dataclass(frozen=True)
class Reference:
    """A reference to an object, which has only its identity."""

    identity: Identity


FORMS: Mapping[str, Callable[[Identity, Attributes], Any]] = {
    "record": Record,
    "value": Value,
    "document": Document,
    "entry": Entry,
    "pair": pair,
}


def identity_of(value: Any) -> Identity | None:
    """Return the identity of an object."""
    if isinstance(value, tuple):
        return value[1] if len(value) == 2 and isinstance(value[1], Identity) else None
    if isinstance(value, Record | Value | Document | Entry | Reference):
        return value.identity
    return None


def seed_of(value: Any) -> str:
    """Return a seed for a parent that is the same in every run."""
    identity = identity_of(value)
    if identity is not None:
        return f"{identity.kind} {identity.number}"
    return repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
