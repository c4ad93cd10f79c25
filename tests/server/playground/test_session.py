"""The user as whom the playground sends requests, and the switch for explanations, in Chromium."""

import pytest

from tests.clients.programs import chromium_exists, run
from tests.clients.test_clients import api, chromium, node, settings
from tests.server.conftest import Api

pytestmark = pytest.mark.slow

__all__ = ["api", "chromium", "chromium_exists", "node", "settings"]


async def test_the_menu_of_users_counts_and_not_the_cookie(api: Api, node: str, chromium: None) -> None:
    """The web app of the demo has the same origin, so the browser has its cookie. Both transports are explained."""
    seen = await run(node, "../server/playground/session.mjs", f"{api.url}/playground")
    assert seen["token"] is None  # the token is in a cookie
    assert seen["home"]["extensions"]["explain"]["kind"] == "query"
    assert seen["live"]["newestFirst"][0]["extensions"]["explain"]["kind"] == "subscription"
    assert seen["homeAsNobody"]["data"] == {"viewer": None}
    assert "data" not in seen["liveAsNobody"]["newestFirst"][0]
