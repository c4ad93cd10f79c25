"""Fault tests: processes and connections are killed, and invariants are checked afterwards."""
