"""The eraser: removes everything of deleted users, with ordinary events, and their texts."""
