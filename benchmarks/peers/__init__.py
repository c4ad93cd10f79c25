"""Fanline beside its peers: other servers that answer the same queries, byte for byte, from the same store."""
