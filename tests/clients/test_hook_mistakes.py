"""The hooks of the client kit say what a query, a cache or an environment lacks, where a list would not be live."""

from pathlib import Path

import pytest

from tests.clients.cached_lists import Stage
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
        "type": "The id is that of a User, not of a Timeline.",
        "apollo": {"liveCursor": LIVE_CURSOR, "id": "The query must select the id of the Timeline."},
        "urql": {"liveCursor": LIVE_CURSOR},
        "relay": {
            "liveCursor": LIVE_CURSOR,
            "connection": "The query must select entries { __id }.",
            "handler": "The environment needs the handlerProvider withLiveCursors(DefaultHandlerProvider).",
        },
    }
