"""Repair: compares the store with the content that the events in the archive determine, and corrects differences."""
