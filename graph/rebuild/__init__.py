"""The rebuild: fills an empty store from the archive."""
