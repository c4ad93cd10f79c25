"""Attacks on a running server: what they cost, and what they must not reveal, block or break."""
