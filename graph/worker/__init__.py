"""The worker: projection of the log, housekeeping and dead letters."""
