"""Pages from which not every candidate is shown, and reads that several callers share."""
