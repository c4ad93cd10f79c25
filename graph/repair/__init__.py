"""Repair: compares derived data with its source and corrects the differences."""
