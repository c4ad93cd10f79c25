"""Chunks of long sequences, for work that is done in steps of bounded size."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items, in order, in slices of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
