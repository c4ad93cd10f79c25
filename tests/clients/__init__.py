"""Third-party clients against a served application."""
