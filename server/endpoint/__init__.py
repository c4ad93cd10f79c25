"""The GraphQL endpoint: HTTP, server-sent events and WebSocket."""
