"""`fanline export`: print all of a user's data as lines of JSON."""

import sys

import orjson

from graph import Graph
from server.cli.stores import existing_store_of, run, user_with_login
from server.lifespan import ArchiveUse
from server.settings import Settings


def export_user(login: str) -> None:
    """Print a user's data. Raises SettingsError for unknown users."""
    settings = Settings.load()

    async def export(graph: Graph) -> None:
        user = await user_with_login(graph, settings, login)
        async for line in graph.export().lines(user):
            sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()

    with existing_store_of(settings):
        run(settings, export, ArchiveUse.READ_ONLY)
