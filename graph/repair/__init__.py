"""Repair: compares the store with what the events in the archive determine, and corrects the differences."""
