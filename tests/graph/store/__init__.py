"""Tests of `graph/store`."""
