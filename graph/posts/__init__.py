"""Posts and what users do about them: publish, reply, delete, like, repost and bookmark."""
