"""HTTP and WebSocket connections, their limits, and the addresses of clients.

The protocol classes extend uvicorn's, so the version of uvicorn is pinned. `server.serving.configure` registers them.
"""
