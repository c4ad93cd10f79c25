"""Tests of the example operations."""
