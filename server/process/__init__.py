"""The server process: start-up checks, logging and memory."""
