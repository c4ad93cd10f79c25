"""Servers that Fanline is compared with. From the same store, they return the same data, down to the order of keys."""
