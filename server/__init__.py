"""The server: settings, authentication, HTTP, the embedded store, the worker and the command line."""
