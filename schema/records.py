"""How a GraphQL type recognises the record behind it."""

from typing import Any, ClassVar


class OfRecord:
    """Mixed into a type that stands behind an interface: `record` is the class of its values."""

    record: ClassVar[type]

    @classmethod
    def is_type_of(cls, value: object, info: Any) -> bool:
        """Tell whether a value is of this type."""
        return type(value) is cls.record
