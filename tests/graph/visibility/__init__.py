"""Tests of visibility."""
