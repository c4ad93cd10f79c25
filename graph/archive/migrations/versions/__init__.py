"""The migrations, in the order of their numbers. Each one can be repeated after a crash."""
