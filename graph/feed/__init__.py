"""The live feed: streams of updates, with replay and filters."""
