"""The eraser: removes all content of deleted users, with ordinary events, and their texts."""
