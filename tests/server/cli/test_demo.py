"""What `fanline demo` prints."""

import pytest

from graph import Graph
from server.cli.demo import introduce, token_of_viewer
from server.settings import Settings, SettingsError
from tests.support.graph_worlds import PASSWORD, people


@pytest.mark.parametrize("has_web", [True, False])
def test_the_demo_names_the_addresses(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_web: bool
) -> None:
    """The address of the web app is printed only if the app has been built."""
    monkeypatch.setenv("COLUMNS", "300")
    introduce(8123, "token", settings, has_web=has_web)
    printed = capsys.readouterr().err
    assert "http://localhost:8123/playground" in printed
    assert "http://localhost:8123/graphql" in printed
    assert ("http://localhost:8123/ " in printed) == has_web


async def test_a_visitor_has_deleted_the_account_of_the_viewer(graph: Graph, settings: Settings) -> None:
    """The next start says how to start over."""
    [alice] = await people(graph, "alice")
    await graph.account_deletion.delete(alice, PASSWORD)
    with pytest.raises(SettingsError, match=f"delete the data folder {settings.data_dir}, or"):
        await token_of_viewer(graph, settings)
