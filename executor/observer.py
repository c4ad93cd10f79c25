"""The interface of an observer of one execution. Execution without an observer has no overhead."""

from collections.abc import Sequence
from typing import Protocol


class Observer(Protocol):
    """Observes how an operation is executed."""

    def plan_started(self) -> None:
        """Record that the operation is executed with a plan, not by graphql-core."""

    def layer_ended(self, fields: Sequence[str]) -> None:
        """Record that the awaited fields of a layer, such as `User.followersCount`, have been completed."""

    def fell_back(self, reason: str) -> None:
        """Record that graphql-core executes the operation, and why."""
