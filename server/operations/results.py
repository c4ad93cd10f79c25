"""Results of operations."""

from strawberry.types import ExecutionResult


def was_executed(result: ExecutionResult) -> bool:
    """Return True if execution started, even if it then failed."""
    return result.data is not None or any(error.path for error in result.errors or ())
