"""`fanline token`: an access token for development."""

import sys

from graph import Graph
from graph.errors import Rejected
from server.auth import Tokens
from server.cli.stores import existing_store_of, run, user_with_login
from server.settings import Settings, SettingsError


def print_token(login: str) -> None:
    """Start a session for a user and print its token. Raises SettingsError in production, and for unknown users."""
    settings = Settings.load()
    if settings.production:
        raise SettingsError("`fanline token` does not run with FANLINE_ENV=production. Use the logIn mutation.")
    with existing_store_of(settings):
        sys.stdout.write(f"{run(settings, lambda graph: issue_token(graph, settings, login))}\n")


async def issue_token(graph: Graph, settings: Settings, login: str) -> str:
    """Start a session and return its token. Raises SettingsError if no user with this login can log in."""
    user = await user_with_login(graph, settings, login)
    try:
        session = await graph.sessions.start(user)
    except Rejected as rejected:
        raise SettingsError(f"{login!r} cannot log in: {rejected}") from rejected
    return Tokens(settings.keys()).issue(session)
