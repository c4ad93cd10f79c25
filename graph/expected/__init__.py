"""What the store should hold for each user, according to the events in the archive."""
