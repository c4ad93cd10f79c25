"""Mutation testing of the Lua scripts."""
