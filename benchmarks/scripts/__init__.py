"""Scripts that write and check worlds inside a private store."""
