"""Pages of timelines: home, of lists, and public."""
