"""Tests of the configurations in docs/deployment."""
