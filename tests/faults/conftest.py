"""Fixtures of the fault tests: further processes on the same store, and a plain client."""

from tests.graph.conftest import another, raw

__all__ = ["another", "raw"]
