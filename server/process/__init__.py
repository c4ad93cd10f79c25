"""The server process: start-up checks, logging, memory, and uvicorn."""
