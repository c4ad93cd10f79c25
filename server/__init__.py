"""The process around the schema: settings, authentication, HTTP, the embedded store, the worker, commands."""
