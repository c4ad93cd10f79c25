"""Tests of `graph/log`."""
