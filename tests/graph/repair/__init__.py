"""Tests of `graph/repair`."""
