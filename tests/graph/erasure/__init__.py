"""Tests of the erasure of deleted users."""
