"""HTTP and WebSocket connections, their limits, and the addresses of clients.

The classes extend those of uvicorn, which is pinned. `server.serving.configure` registers them.
"""
