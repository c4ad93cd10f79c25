"""Worlds, stores, servers and databases for tests."""
