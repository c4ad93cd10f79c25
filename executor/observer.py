"""The interface of an observer of one execution. Executions without an observer do no work for it."""

from collections.abc import Sequence
from typing import Protocol


class Observer(Protocol):
    """Observes how an operation is executed."""

    def plan_started(self) -> None:
        """Record that a plan runs the operation."""

    def layer_ended(self, fields: Sequence[str]) -> None:
        """Record that the awaited fields of a layer, such as `User.followersCount`, have been completed."""

    def fell_back(self, reason: str) -> None:
        """Record that graphql-core executes the operation, and why."""
