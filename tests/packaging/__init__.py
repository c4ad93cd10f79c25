"""Tests of packaging: the wheel, the pinned versions and the container files."""
