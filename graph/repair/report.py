"""The report of a repair: what was compared, the differences found, and how many were corrected."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from graph.repair.defects import Defect
from graph.store.commands import Command

MAX_EXAMPLES = 3

Correction: TypeAlias = Sequence[Command] | Callable[[], Awaitable[bool]]
"""Commands that run one after the other, the first of which replies 0 if the data has changed since the comparison; or
a function that returns whether the difference was corrected. An empty sequence means that there is no correction."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the subject to compare again, the element that differs, and a description with the ids."""

    defect: Defect
    subject: int
    element: int | str
    text: str
    correction: Correction = ()

    @property
    def identity(self) -> tuple[Defect, int, int | str]:
        """The defect, the subject and the element, which a second comparison must find again."""
        return self.defect, self.subject, self.element


@dataclass(slots=True)
class RepairReport:
    """The result of a repair that compared events up to `up_to`, while the log ended at `last`.

    `corrects` is False if differences were only reported. `left_out` is the number of differences that later events may
    have caused, and `changed` is the number of differences whose data had changed before the correction. `compared` has
    the number of owners by part, in the order of the comparisons, and `examples` has the texts of the first differences
    of each defect.
    """

    up_to: int
    last: int
    corrects: bool
    left_out: int = 0
    changed: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    found: Counter[Defect] = field(default_factory=Counter)
    corrected: Counter[Defect] = field(default_factory=Counter)
    examples: defaultdict[Defect, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, differences: Sequence[Difference], outcomes: Sequence[bool]) -> None:
        """Count differences and corrections. `outcomes` has True for each difference that was corrected."""
        for difference, corrected in zip(differences, outcomes, strict=True):
            self.found[difference.defect] += 1
            self.corrected[difference.defect] += corrected
            self.changed += self.corrects and bool(difference.correction) and not corrected
            if len(self.examples[difference.defect]) < MAX_EXAMPLES:
                self.examples[difference.defect].append(difference.text)

    def found_in(self, part: str) -> int:
        """Return the number of differences in one part."""
        return sum(count for defect, count in self.found.items() if defect.part == part)

    def corrected_in(self, part: str) -> int:
        """Return the number of corrected differences in one part."""
        return sum(count for defect, count in self.corrected.items() if defect.part == part)

    @property
    def clean(self) -> bool:
        """Whether no difference is left."""
        return self.found.total() == self.corrected.total()
