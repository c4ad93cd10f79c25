"""What `fanline demo` prints."""

import pytest

from server.cli.demo import introduce
from server.settings import Settings


@pytest.mark.parametrize("has_web", [True, False])
def test_the_demo_names_the_addresses(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_web: bool
) -> None:
    """The web app only if it has been built."""
    monkeypatch.setenv("COLUMNS", "300")
    introduce(8123, "token", settings, has_web=has_web)
    printed = capsys.readouterr().err
    assert "http://localhost:8123/playground" in printed
    assert "http://localhost:8123/graphql" in printed
    assert ("http://localhost:8123/ " in printed) == has_web
