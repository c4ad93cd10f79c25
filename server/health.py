"""The health checks `/health/live` and `/health/ready`."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graph import Graph
from graph.backlog import Backlog
from graph.binding import REBUILDING
from graph.errors import ArchiveUnavailable, GraphError, StoreNotReady, StoreUnavailable, WrongArchive

STORE_SECONDS = 2.0
ARCHIVE_SECONDS = 1.0
CHECK_SECONDS = 10.0
NEARLY_FULL = 0.8
"""The part of the log's limit from which readiness warns. Most changes are refused from nine tenths on."""

NO_STORE = "The store does not answer."
NO_ARCHIVE = (
    "The archive does not answer. Newer posts are served and changes are accepted until the log is full, but older "
    "posts cannot be read. Check the SQL database."
)


async def live(request: Request) -> Response:
    """Return 200 as long as the process answers requests."""
    return respond({"status": "alive"})


class Readiness:
    """The endpoint `/health/ready`. It warns when the oldest event that is not archived is older than `archive_lag`."""

    def __init__(self, archive_lag: timedelta) -> None:
        self._archive_lag = archive_lag
        self._binding: str | None = None
        self._next_check = 0.0
        self._problem: GraphError | None = None

    async def show(self, request: Request) -> Response:
        """Return 200 if the process can serve requests, with warnings for the operator, else 503 with the reason.

        One round trip. Every ten seconds, and when the store has another binding, the check of the archive takes one
        more and a query.
        """
        graph: Graph = request.app.state.graph
        try:
            async with asyncio.timeout(STORE_SECONDS):
                backlog = await graph.backlog()
        except (StoreUnavailable, TimeoutError):
            return unavailable(NO_STORE)
        if backlog.rebuild:
            return unavailable(REBUILDING)
        problem = await self._archive_problem(graph, backlog.binding)
        if isinstance(problem, WrongArchive):
            return unavailable(str(problem))
        if isinstance(problem, StoreUnavailable):
            return unavailable(problem.reason if isinstance(problem, StoreNotReady) else NO_STORE)
        warnings = [*([NO_ARCHIVE] if problem else []), *warnings_about(backlog, self._archive_lag, graph.log.limit)]
        return respond({"status": "ready", **({"warnings": warnings} if warnings else {})})

    async def _archive_problem(self, graph: Graph, binding: str) -> GraphError | None:
        """Return why the store and the archive cannot be used together. Requests in between get the last result."""
        now = asyncio.get_running_loop().time()
        if binding != self._binding or now >= self._next_check:
            self._binding, self._next_check = binding, now + CHECK_SECONDS
            self._problem = await check_archive(graph)
            if isinstance(self._problem, StoreUnavailable):
                self._next_check = now
        return self._problem


async def check_archive(graph: Graph) -> GraphError | None:
    """Return None if the archive answers and belongs to the store, else the error. One round trip and one query."""
    try:
        async with asyncio.timeout(ARCHIVE_SECONDS):
            await graph.binding.check(again=True)
    except (ArchiveUnavailable, StoreUnavailable, WrongArchive) as problem:
        return problem
    except TimeoutError:
        return ArchiveUnavailable(f"no answer within {ARCHIVE_SECONDS:g} seconds")
    return None


def warnings_about(backlog: Backlog, archive_lag: timedelta, limit: int) -> Iterator[str]:
    """Yield what an operator should know and do, one sentence or two each."""
    if backlog.alarm:
        yield f"The archiver has stopped: {backlog.alarm}"
    if backlog.unarchived_seconds > archive_lag.total_seconds() or backlog.unarchived > limit / 2:
        yield (
            f"The archive is {int(backlog.unarchived_seconds) // 60:,} minutes behind the log; {backlog.unarchived:,} "
            "events are not archived. Check that a worker is running and that the SQL database answers."
        )
    if backlog.length > NEARLY_FULL * limit:
        yield (
            f"The log holds {backlog.length:,} of {limit:,} events. From 90% on, changes other than deletions, "
            "unfollows and log-outs are refused. Let the archiver catch up, or raise FANLINE_LOG_LIMIT if the store "
            "has enough memory."
        )


def unavailable(reason: str) -> Response:
    """Return the response of a process that cannot serve requests."""
    return respond({"status": "unavailable", "reason": reason}, 503)


def respond(body: dict[str, Any], status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(body), status, media_type="application/json")
