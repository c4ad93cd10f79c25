"""Pages of timelines: home, user, list and public timelines."""
