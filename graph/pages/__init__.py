"""Pages of lists from which some entries are left out, and reads that several callers share."""
