"""Generated requests, documents and WebSocket conversations."""
