"""The command line: `fanline demo`, `serve`, `worker`, `seed`, `repair`, `schema`, `token`, `grant`, `revoke`."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from graph import Graph
from graph.archive.migrations import SchemaTooNew
from graph.errors import ArchiveUnavailable, StoreUnavailable, WrongArchive
from graph.model import Permission
from schema import sdl
from server.app import running
from server.auth import Tokens
from server.cli.repair_report import repair_with_progress, show
from server.demo.people import PASSWORD, SEVEN
from server.embedded import EmbeddedStore, EmbeddedStoreError
from server.process.checks import UnsafeStart
from server.process.serving import bind, serve_here, serve_many
from server.process.start import create_private_files, start_safely
from server.seeding.load import SeedRefused, Source, demo_source, holds_demo, load
from server.seeding.sources import seed_source
from server.settings import Settings, SettingsError
from server.worker import work

T = TypeVar("T")

DEMO_VIEWER = "alice"
DEMO_CHECK_SECONDS = 5.0
EXPECTED = (SettingsError, UnsafeStart, EmbeddedStoreError, SeedRefused, SchemaTooNew, WrongArchive)
HOME = (
    "{ viewer { login homeTimeline { posts(first: 3) { "
    "edges { node { text author { login relationship { state } } } } } } } }"
)

console = Console(stderr=True, highlight=False)
cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fanline: a self-hosted GraphQL backend for a micro-blog. Settings are read from FANLINE_… variables.",
)

Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 selects a free one.")]
Login = Annotated[str, typer.Argument(help="The login of the user.")]


@cli.command()
def demo(
    port: Port = 8000,
    data: Annotated[Path | None, typer.Option(help="The data folder; else FANLINE_DATA_DIR.")] = None,
) -> None:
    """Serve a demo on this machine: an embedded store, a few hundred users with posts, and the playground."""
    settings = load_settings(data)
    if settings.production:
        raise SettingsError("The demo's passwords are public, so it does not run with FANLINE_ENV=production.")
    start_safely(settings, print_warning, "127.0.0.1")
    listening = bind("127.0.0.1", port)
    with store_of(settings):
        token = run(settings, lambda graph: prepare_demo(graph, settings))
        introduce(listening.getsockname()[1], token, settings)
        serve_here(settings, listening, demo_login=DEMO_VIEWER)


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="The number of server processes.")] = 1,
) -> None:
    """Serve the API. Without FANLINE_STORE_URL, an embedded store is started too."""
    settings = load_settings()
    start_safely(settings, print_warning, host)
    listening = bind(host, port)
    console.print(f"Serving on {host}, port {listening.getsockname()[1]}. Press Ctrl-C to stop.")
    with store_of(settings):
        if settings.production:
            asyncio.run(refuse_demo(settings))
        if workers == 1:
            serve_here(settings, listening)
        else:
            serve_many(settings, listening, workers)


@cli.command()
def worker(
    once: Annotated[bool, typer.Option("--once", help="Project what is in the log, then exit.")] = False,
    dead_letters: Annotated[
        bool, typer.Option("--dead-letters", help="List the events that could not be projected.")
    ] = False,
) -> None:
    """Project the log in a separate process. Several workers may run at once."""
    settings = load_settings()
    start_safely(settings, print_warning)
    task: Callable[[Graph], Awaitable[None]] = _list_dead_letters if dead_letters else _drain if once else _work
    with store_of(settings):
        run(settings, task)


@cli.command()
def seed(
    users: Annotated[int | None, typer.Option(help="The number of users; 1000 if not given.")] = None,
    posts: Annotated[int | None, typer.Option(help="The number of posts; as many as users if not given.")] = None,
    following: Annotated[
        int | None, typer.Option(help="The average number of follows of a user; 20 if not given.")
    ] = None,
    follows: Annotated[Path | None, typer.Option(help="A file of follows, instead of generated ones.")] = None,
    texts: Annotated[Path | None, typer.Option(help="A file of post texts, one per line.")] = None,
) -> None:
    """Fill an empty store with users, follows and posts, as if they had come through the API."""
    settings = load_settings()
    source = seed_source(users, posts, following, follows, texts)
    with store_of(settings):
        fresh = run(settings, lambda graph: seed_with_progress(graph, source))
    console.print(f"{'Seeded' if fresh else 'The store already holds'} {source.what}.")


@cli.command()
def repair(
    check: Annotated[bool, typer.Option("--check", help="Compare only; exit code 1 if there are differences.")] = False,
) -> None:
    """Compare derived data with its source and repair it. Fanline can keep serving meanwhile."""
    settings = load_settings()
    with store_of(settings):
        report = run(settings, lambda graph: repair_with_progress(graph, console, mend=not check))
    show(report, console)
    if not report.clean:
        raise typer.Exit(1)


@cli.command()
def schema() -> None:
    """Print the GraphQL schema."""
    sys.stdout.write(sdl())


@cli.command()
def token(login: Login) -> None:
    """Print an access token of a user, for development."""
    settings = load_settings()
    if settings.production:
        raise SettingsError("`fanline token` does not run with FANLINE_ENV=production. Use the mutation logIn.")
    with existing_store_of(settings):
        sys.stdout.write(f"{run(settings, lambda graph: issue_token(graph, settings, login))}\n")


@cli.command()
def grant(login: Login, permission: Permission) -> None:
    """Grant a permission to a user, until it is revoked. All processes apply it at once."""
    settings = load_settings()
    with existing_store_of(settings):
        new = run(settings, lambda graph: _grant(graph, settings, login, permission))
    console.print(f"{login} {'now has' if new else 'already had'} the permission {permission}.")


@cli.command()
def revoke(login: Login, permission: Permission) -> None:
    """Revoke a permission of a user. Subscriptions that need it end."""
    settings = load_settings()
    with existing_store_of(settings):
        had = run(settings, lambda graph: _revoke(graph, settings, login, permission))
    console.print(f"{login} {'no longer has' if had else 'did not have'} the permission {permission}.")


def load_settings(data_dir: Path | None = None) -> Settings:
    """Read the environment; a folder given on the command line wins over it. Raises SettingsError."""
    given: dict[str, Any] = {"data_dir": data_dir} if data_dir else {}
    return Settings.load(**given)


@contextlib.contextmanager
def store_of(settings: Settings) -> Iterator[None]:
    """Keep the embedded store running, if no other is set, until this process ends: by itself or by SIGTERM.

    What is served in this process joins the same store.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if settings.store_url is not None:
        yield
        return
    with EmbeddedStore(settings.data_dir, settings.durability):
        yield


@contextlib.contextmanager
def existing_store_of(settings: Settings) -> Iterator[None]:
    """Do as `store_of`, for what needs people who are there. Raises SettingsError if nobody has made the store yet."""
    if settings.store_url is None and not EmbeddedStore(settings.data_dir).folder.is_dir():
        raise SettingsError(f"There is no store yet in {whereabouts(settings)}.")
    with store_of(settings):
        yield


def whereabouts(settings: Settings) -> str:
    """Say which store is meant, without its password."""
    if settings.store_url is None:
        return f"the data folder {settings.data_dir} (set FANLINE_DATA_DIR or FANLINE_STORE_URL for another one)"
    url = urlsplit(settings.store_url)
    return f"the store {url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def run(settings: Settings, task: Callable[[Graph], Awaitable[T]]) -> T:
    """Do something with the graph, in an event loop of its own."""

    async def main() -> T:
        async with running(settings, worker=False) as graph:
            await graph.store.ping()
            return await task(graph)

    return asyncio.run(main())


def print_warning(text: str) -> None:
    """Print a warning in one line."""
    console.print(f"[yellow]Warning:[/] {escape(text)}", soft_wrap=True)


async def refuse_demo(settings: Settings) -> None:
    """Raise UnsafeStart if the store holds the demo's users. One round trip; none while the store is down."""
    url = settings.store_url or EmbeddedStore(settings.data_dir).url
    graph = await Graph.open(url, settings.tuning)
    try:
        async with asyncio.timeout(DEMO_CHECK_SECONDS):
            found = await holds_demo(graph)
    except (StoreUnavailable, TimeoutError):
        return  # the API waits for the store
    finally:
        await graph.close()
    if found:
        raise UnsafeStart(
            "The demo's users have a public password, so they cannot be served in production. They are in "
            f"{whereabouts(settings)}."
        )


async def prepare_demo(graph: Graph, settings: Settings) -> str:
    """Seed the demo world unless it is there, and log the demo person in; give the token."""
    await seed_with_progress(graph, demo_source())
    return await issue_token(graph, settings, DEMO_VIEWER)


async def seed_with_progress(graph: Graph, source: Source) -> bool:
    """Seed, and show how far it is; False if the same was there already."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("Seeding", total=None)

        def advance(done: int, total: int) -> None:
            if progress.tasks[bar].total is None:
                progress.reset(bar, total=total, completed=done)  # what was there beforehand took no time
            else:
                progress.update(bar, completed=done)

        return await load(graph, source, advance)


async def issue_token(graph: Graph, settings: Settings, login: str) -> str:
    """Start a session and give its token. Raises SettingsError if there is nobody of that name."""
    return Tokens(settings.keys()).issue(await graph.sessions.start(await id_of(graph, settings, login)))


async def id_of(graph: Graph, settings: Settings, login: str) -> int:
    """Find somebody. Raises SettingsError if there is nobody of that name."""
    [user] = await graph.users.ids_of_logins([login])
    if user is None:
        raise SettingsError(f"There is no user with the login {login!r} in {whereabouts(settings)}.")
    return user


async def _grant(graph: Graph, settings: Settings, login: str, permission: Permission) -> bool:
    return await graph.users.grant(await id_of(graph, settings, login), permission)


async def _revoke(graph: Graph, settings: Settings, login: str, permission: Permission) -> bool:
    return await graph.users.revoke(await id_of(graph, settings, login), permission)


async def _work(graph: Graph) -> None:
    console.print("Projecting the log. Press Ctrl-C to stop.")
    await work(graph)


async def _drain(graph: Graph) -> None:
    mark = await graph.worker().drain()
    console.print(f"Everything up to number {mark} is projected.")


async def _list_dead_letters(graph: Graph) -> None:
    letters = await graph.worker().dead_letters()
    console.print(f"{len(letters)} events could not be projected." if letters else "There are no dead letters.")
    for letter in letters:
        sys.stdout.write("  ".join(f"{name}={value}" for name, value in letter.items()) + "\n")


def introduce(port: int, access_token: str, settings: Settings) -> None:
    """Say what is where, who can log in, and how to ask."""
    url = f"http://localhost:{port}"
    table = Table.grid(padding=(0, 2))
    table.add_row("Playground", f"[bold]{url}/playground[/] (logged in as {DEMO_VIEWER})")
    table.add_row("GraphQL", f"{url}/graphql")
    table.add_row("Log-ins", f"{', '.join(role.person.login for role in SEVEN)}; password [bold]{PASSWORD}[/]")
    table.add_row("Data", str(settings.data_dir) if settings.store_url is None else "in the store of FANLINE_STORE_URL")
    console.print(table)
    console.print(f"\n{DEMO_VIEWER}'s home timeline, ready to paste:\n")
    console.print(
        f"curl -s {url}/graphql -H 'content-type: application/json' \\\n"
        f"  -H 'authorization: Bearer {access_token}' \\\n"
        f'  -d \'{{"query": "{HOME}"}}\'\n',
        markup=False,
        soft_wrap=True,
    )
    console.print("Serving on this machine only. Press Ctrl-C to stop.")


def main() -> NoReturn:
    """Run the command line; what can be expected to go wrong is one sentence, not a traceback."""
    create_private_files()
    try:
        cli()
    except StoreUnavailable as outage:
        console.print(f"[red]fanline:[/] The store does not answer: {escape(outage.reason)}", markup=True)
        sys.exit(1)
    except ArchiveUnavailable as outage:
        console.print(f"[red]fanline:[/] The archive does not answer: {escape(outage.reason)}", markup=True)
        sys.exit(1)
    except EXPECTED as error:
        console.print(f"[red]fanline:[/] {escape(str(error))}", markup=True, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


if __name__ == "__main__":
    main()
