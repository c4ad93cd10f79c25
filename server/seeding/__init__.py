"""Seeding: bulk loading of generated or imported data."""
