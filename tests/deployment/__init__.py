"""Deployment: what docs/deployment ships works."""
