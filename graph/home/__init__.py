"""Home timelines: caches, fan-out, merging, and the delivery mode of each author."""
