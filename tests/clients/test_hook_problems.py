"""What the hooks of the client kit show when something is missing or wrong, cannot be read, or arrives late."""

from pathlib import Path

import pytest

from resolvers.ids import Kind, encode
from tests.clients.cached_lists import CACHES, Stage
from tests.clients.programs import FOLDER, run

pytestmark = pytest.mark.slow

LIVE_CURSOR = "The query must select liveCursor beside entries."


async def test_what_is_missing_is_named(stage: Stage, artifacts: Path) -> None:
    seen = await run(
        "node", str(FOLDER / "kit" / "mistakes.mjs"), f"{stage.api.url}/graphql", stage.token, str(artifacts)
    )
    assert seen == {
        "cache": {
            "apollo": "InMemoryCache needs typePolicies(relayStylePagination()) of @fanline/client/apollo.",
            "urql": "cacheExchange needs keys, resolvers and updates of @fanline/client/urql.",
        },
        "type": "The id is that of a User, not that of a Timeline.",
        "apollo": {"liveCursor": LIVE_CURSOR, "id": "The query must select the id of the Timeline."},
        "urql": {"liveCursor": LIVE_CURSOR},
        "relay": {
            "liveCursor": LIVE_CURSOR,
            "connection": "The query must select entries { __id }.",
            "handler": "The environment needs the handlerProvider withLiveCursors(DefaultHandlerProvider), "
            "and liveCursor needs the list's arguments.",
        },
    }


async def test_a_page_that_cannot_be_read_is_an_error_and_can_be_loaded_again(stage: Stage, artifacts: Path) -> None:
    """The response has data and an error: the list stays as it is."""
    program = str(FOLDER / "kit" / "unreadable.mjs")
    seen = await run("node", program, f"{stage.api.url}/graphql", stage.token, str(artifacts))
    assert seen == {cache: [20, True, True, 40, None] for cache in CACHES}


async def test_a_late_response_for_a_former_id_changes_nothing(stage: Stage, artifacts: Path) -> None:
    """It affects neither the error nor the pages of the list that is now shown."""
    slow, shown = (encode(Kind.USER_TIMELINE, user) for user in (stage.viewer, stage.author))
    program = str(FOLDER / "kit" / "former-id.mjs")
    seen = await run("node", program, f"{stage.api.url}/graphql", stage.token, str(artifacts), slow, shown)
    failed, scrolled, first = [0, False, True], [40, False, False], [20, False, False]
    assert seen == {
        cache: {"fails": [failed, failed, first], "scrolled": [scrolled, scrolled, first]} for cache in CACHES
    }
