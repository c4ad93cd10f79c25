"""Properties that hold for any interleaving, checked against a plain model."""
