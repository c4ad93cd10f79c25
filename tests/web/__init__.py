"""The reference web app, in Chromium."""
