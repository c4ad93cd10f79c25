"""Choices read from a tape of bytes: far cheaper than a Hypothesis draw each, and shrunk by Hypothesis all the same."""

from collections.abc import Sequence
from typing import TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


class Tape:
    """Makes choices from bytes, one a choice; at the end of the tape, always the first and simplest."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def again(self) -> "Tape":
        """Return the same tape, rewound."""
        return Tape(self._content)

    def _byte(self) -> int:
        byte = self._content[self._at] if self._at < len(self._content) else 0
        self._at += 1
        return byte

    def below(self, bound: int) -> int:
        """Choose a number from 0 to below the bound, which is at most 256."""
        return self._byte() * bound >> 8

    def pick(self, options: Sequence[T]) -> T:
        """Choose one of several, the first being the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Say yes this often; no is the simpler."""
        return self.below(100) >= 100 - percent

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """Choose up to so many different ones, in their order."""
        chosen = {self.below(len(options)) for _ in range(self.below(most + 1))} if options else set()
        return [option for index, option in enumerate(options) if index in chosen]


def tapes(length: int) -> st.SearchStrategy[Tape]:
    """Generate tapes of this length."""
    return st.binary(min_size=length, max_size=length).map(Tape)
