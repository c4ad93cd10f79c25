"""Lua scripts, one atomic step each; every header documents KEYS and ARGV."""
