"""What a viewer may see: suspensions, deletions, blocks and mutes."""
