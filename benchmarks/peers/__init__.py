"""Servers that Fanline is compared with. They answer the same queries, byte for byte, from the same store."""
