"""Commands about a user who has deleted the account, or is suspended."""

import pytest

from graph import Graph
from server.cli.stores import user_with_login
from server.cli.token import issue_token
from server.settings import Settings, SettingsError
from tests.support.graph_worlds import PASSWORD, people


async def test_a_deleted_login_is_told_from_an_unknown_one(graph: Graph, store_url: str) -> None:
    """The case of the login is ignored."""
    [bob] = await people(graph, "bob")
    await graph.account_deletion.delete(bob, PASSWORD)
    settings = Settings(store_url=store_url)

    with pytest.raises(SettingsError, match="The user with the login 'Bob' has deleted their account in"):
        await user_with_login(graph, settings, "Bob")
    for login in ("nobody", "no login"):
        with pytest.raises(SettingsError, match=f"There is no user with the login '{login}'"):
            await user_with_login(graph, settings, login)


async def test_a_suspended_user_gets_no_token(graph: Graph, settings: Settings) -> None:
    """The error message gives the reason."""
    [bob] = await people(graph, "bob")
    await graph.moderation.suspend(bob)
    with pytest.raises(SettingsError, match="'bob' cannot log in: This account is suspended"):
        await issue_token(graph, settings, "bob")
