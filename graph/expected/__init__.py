"""What the store should hold of users, as their events in the archive say."""
