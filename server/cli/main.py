"""The command line `fanline`: its commands and options.

Each command imports its module when it runs, so that `fanline --help` starts quickly.
"""

import gc
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

PRIVATE = 0o077  # umask: files that the process and its children create are readable by their owner only
COLLECTION = (100_000, 10, 10)
"""The thresholds of the garbage collector. Imports create hundreds of thousands of objects, and none is garbage."""

cli = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fanline: a self-hosted GraphQL backend for a micro-blog. Settings are read from FANLINE_… variables.",
)

Port = Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 selects a free one.")]
DataFolder = Annotated[Path | None, typer.Option(help="The data folder. Overrides FANLINE_DATA_DIR.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Turn off the activity of the demo's users.")]
Login = Annotated[str, typer.Argument(help="The login of the user.")]
PermissionName = Annotated[str, typer.Argument(metavar="PERMISSION", help="The permission, such as `firehose`.")]


def print_version(wanted: bool) -> None:
    """Print the version and exit if the option is given."""
    if wanted:
        sys.stdout.write(f"fanline {version('fanline')}\n")
        raise typer.Exit


@cli.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Read the global options."""


@cli.command()
def demo(port: Port = 8000, data: DataFolder = None, quiet: Quiet = False) -> None:
    """Serve a demo on this machine: a few hundred users who publish and follow, the playground and the web app.

    The first start loads the demo data. The API and the playground listen on 127.0.0.1 only.
    """
    from server.cli.demo import serve_demo

    serve_demo(port, data, quiet=quiet)


@cli.command()
def cluster_demo(port: Port = 8000, data: DataFolder = None, quiet: Quiet = False) -> None:
    """Serve the demo on a private cluster of three primaries and three replicas, which runs on this machine.

    The cluster starts in about two seconds, in the folder `cluster` of the data folder. The nodes listen on 127.0.0.1
    without a password. To watch a failover, kill a node: `kill -9 $(cat DIR/cluster/0/store/pid)`. The next start of
    the demo restarts it.
    """
    from server.cli.demo import serve_cluster_demo

    serve_cluster_demo(port, data, quiet=quiet)


@cli.command("playground-assets")
def playground_assets() -> None:
    """Download the files of the playground, so that it works offline."""
    from server.cli.playground_assets import install_assets

    install_assets()


@cli.command()
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Port = 8000,
    workers: Annotated[int, typer.Option(min=1, max=256, help="The number of server processes.")] = 1,
) -> None:
    """Serve the API. Without FANLINE_STORE_URL, an embedded store is started too."""
    from server.cli.serve import serve_api

    serve_api(host, port, workers)


@cli.command()
def worker(
    once: Annotated[bool, typer.Option("--once", help="Project and archive all events in the log, then exit.")] = False,
) -> None:
    """Project and archive the log in a separate process. Several workers may run at once.

    With `--once`, the command ends when everything is projected and archived. Before it ends, it tries to convert a
    store of an earlier version.
    """
    from server.cli import worker as commands

    if once:
        commands.drain()
    else:
        commands.work()


@cli.command("dead-letters")
def dead_letters(
    action: Annotated[str, typer.Argument(help="`list`, `retry` or `drop`.")] = "list",
    entries: Annotated[list[str] | None, typer.Argument(metavar="ENTRY…", help="The entries, as listed.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Retry or drop all.")] = False,
) -> None:
    """List, retry or drop the events and tasks that could not be projected or archived.

    `retry` processes them again, and `drop` removes them. Both take entries, or `--all`.
    """
    from server.cli import dead_letters as commands

    if not commands.handle(action, entries or [], everything):
        raise typer.Exit(1)


@cli.command()
def seed(
    users: Annotated[int | None, typer.Option(help="The number of users; default 1000.")] = None,
    posts: Annotated[int | None, typer.Option(help="The number of posts; default: the number of users.")] = None,
    following: Annotated[int | None, typer.Option(help="How many users a user follows on average; default 20.")] = None,
    follows: Annotated[Path | None, typer.Option(help="A file of follows, instead of generated ones.")] = None,
    texts: Annotated[Path | None, typer.Option(help="A file of post texts, one per line.")] = None,
) -> None:
    """Fill an empty store and an unused archive with users, follows and posts, as if they had come through the API.

    Everything is written in bulk. An interrupted seeding continues when the same command is run again.
    """
    from server.cli.seed import seed_store

    seed_store(users, posts, following, follows, texts)


@cli.command()
def rebuild() -> None:
    """Fill an empty store from the archive after the store was lost. Stop all other processes first."""
    from server.cli.rebuild import rebuild_store

    rebuild_store()


@cli.command()
def repair(
    check: Annotated[bool, typer.Option("--check", help="Compare only; exit code 1 if there are differences.")] = False,
) -> None:
    """Compare the store with the archive and correct the differences. The server can keep running in the meantime."""
    from server.cli import repair as commands

    clean = commands.check() if check else commands.repair()
    if not clean:
        raise typer.Exit(1)


@cli.command()
def schema() -> None:
    """Print the GraphQL schema."""
    from schema import sdl

    sys.stdout.write(sdl())


@cli.command()
def explain(
    file: Annotated[Path, typer.Argument(help="A file with a GraphQL query.")],
    variables: Annotated[str, typer.Option(help="The variables, as a JSON object.")] = "{}",
    operation: Annotated[str | None, typer.Option(help="The operation, if the file has several.")] = None,
    login: Annotated[str | None, typer.Option(help="The login of the user to read as; default: anonymous.")] = None,
    warm: Annotated[bool, typer.Option("--warm", help="Run the query twice, and explain the second run.")] = False,
) -> None:
    """Run a query on the store, and print what it costs. The data is not printed."""
    from server.cli.explain import print_explanation

    print_explanation(file, variables, operation, login, warm=warm)


@cli.command()
def token(login: Login) -> None:
    """Print an access token for a user, for use in development."""
    from server.cli.token import print_token

    print_token(login)


@cli.command()
def export(login: Login) -> None:
    """Print all of a user's data as lines of JSON: the profile, the sessions and all events.

    The server can keep running in the meantime.
    """
    from server.cli.export import export_user

    export_user(login)


@cli.command()
def grant(login: Login, permission: PermissionName) -> None:
    """Grant a permission to a user, until it is revoked. All processes apply it at once.

    `firehose` allows subscribing to the events of all users at once.
    """
    from server.cli import permissions

    permissions.grant(login, permission)


@cli.command()
def revoke(login: Login, permission: PermissionName) -> None:
    """Revoke a permission of a user. Subscriptions that need it end."""
    from server.cli import permissions

    permissions.revoke(login, permission)


@cli.command()
def suspend(login: Login) -> None:
    """Suspend a user until `fanline unsuspend`: hide all of the user's data, and end all sessions. Effective at once.

    The user cannot log in. Nothing is deleted.
    """
    from server.cli import moderation

    moderation.suspend(login)


@cli.command()
def unsuspend(login: Login) -> None:
    """End the suspension of a user. The user can log in again, and all of the user's data is visible again at once."""
    from server.cli import moderation

    moderation.unsuspend(login)


@cli.command()
def remove(
    post: Annotated[str, typer.Argument(metavar="POST", help="The id of the post, as the API returns it.")],
) -> None:
    """Permanently delete a post of any user, as if its author had deleted it."""
    from server.cli import moderation

    moderation.remove(post)


@cli.command()
def reports(
    action: Annotated[str, typer.Argument(help="`list` or `close`.")] = "list",
    numbers: Annotated[list[int] | None, typer.Argument(metavar="REPORT…", help="The reports, as listed.")] = None,
) -> None:
    """List or close the reports that users have filed about users and posts.

    `list` prints the open reports as lines of JSON, oldest first. `close` closes reports, along with all other reports
    of the same users and posts.
    """
    from server.cli import moderation

    if not moderation.reports(action, numbers or []):
        raise typer.Exit(1)


def main() -> NoReturn:
    """Run the command line. Expected failures are printed without a traceback."""
    os.umask(PRIVATE)
    gc.set_threshold(*COLLECTION)
    try:
        cli()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        from server.cli.failures import explain

        explain(error)
        sys.exit(1)
    finally:
        gc.freeze()  # otherwise, the interpreter looks for garbage among all objects when it exits
    sys.exit(0)


if __name__ == "__main__":
    main()
