"""Tests of relations."""
