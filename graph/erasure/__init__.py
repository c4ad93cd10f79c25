"""The eraser: removes the content of deleted users by appending ordinary events, and removes their texts."""
