"""The migrations, in the order of their numbers; each can be repeated after a crash."""
