"""Attacks on a served application, and what they must not learn, occupy or break."""
