"""Choices read from a tape of bytes: much cheaper than a Hypothesis draw for each choice, but still shrinkable."""

from collections.abc import Sequence
from typing import TypeVar

import hypothesis.strategies as st

T = TypeVar("T")


class Tape:
    """Makes one choice per byte. After the end of the tape, every choice is the first and simplest."""

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
        """Return a number: at least 0, and below the bound, which is at most 256."""
        return self._byte() * bound >> 8

    def pick(self, options: Sequence[T]) -> T:
        """Return one of several values, the first being the simplest."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Return True with this probability in percent; False is the simpler choice."""
        return self.below(100) >= 100 - percent

    def some(self, options: Sequence[T], limit: int) -> list[T]:
        """Return up to this many different values, in their order."""
        chosen = {self.below(len(options)) for _ in range(self.below(limit + 1))} if options else set()
        return [option for index, option in enumerate(options) if index in chosen]


def tapes(length: int) -> st.SearchStrategy[Tape]:
    """Return a strategy for tapes of this length."""
    return st.binary(min_size=length, max_size=length).map(Tape)
