"""Tests of what is shipped: the wheel, the pinned versions, the container files."""
