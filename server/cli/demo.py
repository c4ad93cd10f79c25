"""`fanline demo` and `fanline cluster-demo`: the demo world, served on this machine."""

import socket
from pathlib import Path

from rich.table import Table

from graph import Graph
from server.app import create_app
from server.cli.console import console
from server.cli.messages import print_warning
from server.cli.seed import seed_with_progress
from server.cli.stores import cluster_of, describe, run, store_of
from server.cli.token import issue_token
from server.demo import Demo
from server.demo.people import PASSWORD, SEVEN
from server.lifespan import ArchiveUse
from server.playground.examples import EXAMPLES
from server.process.start import start_safely
from server.seeding.load import demo_source
from server.serving import bind, serve_here
from server.settings import Settings, SettingsError

HOST = "127.0.0.1"
VIEWER = "alice"
WEB = EXAMPLES / "web" / "dist"
HOME_TIMELINE = (
    "{ viewer { user { login } homeTimeline { entries(first: 3) { edges { node { author { login relationship { state } "
    "} ... on Post { text } ... on Repost { post { text } } } } } } } }"
)


def serve_demo(port: int, data: Path | None, *, quiet: bool = False) -> None:
    """Seed the demo world, unless the store already holds it, and serve it. Raises SettingsError in production.

    Unless `quiet`, users of the demo publish posts and follow each other while it runs.
    """
    settings, listening = _begin(port, data)
    with store_of(settings):
        _serve(settings, listening, quiet)


def serve_cluster_demo(port: int, data: Path | None, *, quiet: bool = False) -> None:
    """Serve the demo world on a private cluster. Raises SettingsError in production, and if a store is configured."""
    settings, listening = _begin(port, data)
    console.print("Starting three primaries and three replicas, which takes a few seconds.")
    with cluster_of(settings) as clustered:
        _serve(clustered, listening, quiet)


def _begin(port: int, data: Path | None) -> tuple[Settings, socket.socket]:
    settings = Settings.load(data_dir=data) if data else Settings.load()
    if settings.production:
        raise SettingsError("The demo's passwords are public, so it does not run with FANLINE_ENV=production.")
    start_safely(settings, print_warning, HOST)
    return settings, bind(HOST, port)


def _serve(settings: Settings, listening: socket.socket, quiet: bool) -> None:
    token = run(settings, lambda graph: _prepare(graph, settings), ArchiveUse.REBUILD)
    web = WEB if (WEB / "index.html").is_file() else None
    demo = Demo(tuple(role.person for role in SEVEN), web, lively=not quiet)
    app = create_app(settings, demo=demo)
    introduce(listening.getsockname()[1], token, settings, has_web=web is not None)
    serve_here(app, listening, settings)


async def _prepare(graph: Graph, settings: Settings) -> str:
    await seed_with_progress(graph, demo_source())
    return await token_of_viewer(graph, settings)


async def token_of_viewer(graph: Graph, settings: Settings) -> str:
    """Return an access token for the user that the demo logs in as. Raises SettingsError if the account was deleted."""
    if await graph.users.ids_of_logins([VIEWER]) == [None]:
        raise SettingsError(
            f"The demo logs in as {VIEWER}, whose account was deleted. To start over, delete the data folder "
            f"{settings.data_dir}, or choose another with --data. If FANLINE_STORE_URL is set, empty that store too."
        )
    return await issue_token(graph, settings, VIEWER)


def introduce(port: int, access_token: str, settings: Settings, *, has_web: bool) -> None:
    """Print the URLs, the users' logins and password, and a sample request."""
    url = f"http://localhost:{port}"
    table = Table.grid(padding=(0, 2))
    if has_web:
        table.add_row("Web app", f"[bold]{url}/[/]")
    table.add_row("Playground", f"[bold]{url}/playground[/] (logged in as {VIEWER})")
    table.add_row("GraphQL", f"{url}/graphql")
    table.add_row("Log-ins", f"{', '.join(role.person.login for role in SEVEN)}; password [bold]{PASSWORD}[/]")
    table.add_row("Data", str(settings.data_dir) if settings.store_url is None else f"in {describe(settings)}")
    console.print(table)
    console.print(f"\n{VIEWER}'s home timeline, ready to paste:\n")
    console.print(
        f"curl -s {url}/graphql -H 'content-type: application/json' \\\n"
        f"  -H 'authorization: Bearer {access_token}' \\\n"
        f'  -d \'{{"query": "{HOME_TIMELINE}"}}\'\n',
        markup=False,
        soft_wrap=True,
    )
    console.print("Serving on this machine only. Press Ctrl-C to stop.")
