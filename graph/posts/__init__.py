"""Posts: publishing, replies, deletion, likes, reposts and bookmarks."""
