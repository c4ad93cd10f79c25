"""Tests of `resolvers`."""
