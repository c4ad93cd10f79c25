"""The rebuild: fills an empty store with what the archive holds."""
