"""Worlds, stores, servers and databases that tests share."""
