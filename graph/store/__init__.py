"""The connection to Valkey or Redis: commands, scripts, and the read pipeline."""
