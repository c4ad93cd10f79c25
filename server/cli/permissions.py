"""`fanline grant` and `fanline revoke`: permissions of users."""

import typer

from graph import Graph
from graph.model import Permission
from server.cli.messages import say
from server.cli.stores import existing_store_of, run, user_with_login
from server.settings import Settings


def grant(login: str, name: str) -> None:
    """Grant a permission. Raises SettingsError for unknown users."""
    permission, settings = permission_named(name), Settings.load()

    async def change(graph: Graph) -> bool:
        return await graph.users.grant(await user_with_login(graph, settings, login), permission)

    with existing_store_of(settings):
        granted = run(settings, change)
    say(f"{login} {'now has' if granted else 'already had'} the permission {permission}.")


def revoke(login: str, name: str) -> None:
    """Revoke a permission. Raises SettingsError for unknown users."""
    permission, settings = permission_named(name), Settings.load()

    async def change(graph: Graph) -> bool:
        return await graph.users.revoke(await user_with_login(graph, settings, login), permission)

    with existing_store_of(settings):
        revoked = run(settings, change)
    say(f"{login} {'no longer has' if revoked else 'did not have'} the permission {permission}.")


def permission_named(name: str) -> Permission:
    """Return the permission with this name. Raises typer.BadParameter if there is none."""
    try:
        return Permission(name)
    except ValueError:
        known = ", ".join(permission.value for permission in Permission)
        raise typer.BadParameter(f"{name!r} is not a permission; the permissions are: {known}.") from None
