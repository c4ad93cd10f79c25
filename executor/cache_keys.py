"""Hashable cache keys for parents and arguments."""

import dataclasses
from collections.abc import Hashable, Mapping


class IdentityKey:
    """A cache key for an unhashable object. It equals only keys of the same object, and keeps the object alive."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def freeze(value: object) -> Hashable:
    """Return a hashable key for the value of an argument. Input objects, lists and mappings are compared by content.

    Scalars of different types never have the same key: 1, 1.0 and True are different arguments.
    """
    if isinstance(value, Mapping):
        return (dict, frozenset((name, freeze(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return (list, tuple(freeze(item) for item in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return (type(value), tuple(freeze(getattr(value, field.name)) for field in fields))
    return freeze_parent(value)


def freeze_parent(value: object) -> Hashable:
    """Return a hashable key for a parent: its type and value, or an IdentityKey if the parent is unhashable."""
    try:
        hash(value)
    except TypeError:
        return IdentityKey(value)
    return (type(value), value)
