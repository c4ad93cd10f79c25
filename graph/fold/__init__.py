"""The fold: what the keys of the store hold after a set of events, computed in Python without a store."""
