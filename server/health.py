"""The health checks `/health/live` and `/health/ready`."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from graph import Graph
from graph.binding import REBUILDING
from graph.errors import ArchiveUnavailable, GraphError, StoreNotReady, StoreUnavailable, WrongArchive
from graph.log.backlog import Backlog
from graph.log.log import MAX_AHEAD, RESERVE
from graph.store.capacity import Capacity

STORE_SECONDS = 2.0
ARCHIVE_SECONDS = 1.0
CHECK_SECONDS = 3.0
NEARLY_FULL = 0.8
"""`/health/ready` warns when the log holds more than this share of its limit."""

LOG_ADVICE = "Let the archiver catch up, or raise FANLINE_LOG_LIMIT if the store has enough memory."
NO_STORE = "The store does not answer."
NO_LOG = (
    "The shard of the store that holds the log does not answer, so changes fail and nothing new is shown. Other shards "
    "answer. Check the servers of the shard."
)
REFUSALS = {
    "MISCONF": "it cannot write to its disk. Free up disk space, and read the store's log.",
    "NOREPLICAS": "it has fewer replicas than `min-replicas-to-write`, or is the embedded store on a nearly full disk. "
    "Start the replicas, or free the disk.",
    "BUSY": "a script has been running for too long. Read the store's log.",
}
"""Why a store refuses all writes, by the first word of its error. The text of the error is logged, but not sent."""
OTHER_REFUSAL = "read the log of this process and that of the store."
NO_ARCHIVE = (
    "The archive does not answer. Newer posts are served and changes are accepted until the log is full, but older "
    "posts cannot be read. Check the SQL database."
)


async def live(request: Request) -> Response:
    """Return 200 as long as the process answers requests."""
    return respond({"status": "alive"})


class Readiness:
    """The endpoint `/health/ready`.

    The process is degraded if changes are refused, if the oldest unprojected event is older than `worker_lag`, or if
    the oldest unarchived event is older than `max_archive_lag`. A degraded process counts as ready only if
    `while_degraded`. An unarchived event that is older than `archive_lag` causes a warning.
    """

    def __init__(
        self,
        worker_lag: timedelta,
        archive_lag: timedelta,
        max_archive_lag: timedelta,
        *,
        while_degraded: bool,
    ) -> None:
        self._worker_lag = worker_lag
        self._max_archive_lag = max_archive_lag
        self._archive_lag = archive_lag
        self._while_degraded = while_degraded
        self._binding: str | None = None
        self._next_check = 0.0
        self._problem: GraphError | None = None

    async def show(self, request: Request) -> Response:
        """Return 200 if the process can serve requests, with warnings for the operator, else 503 with the reason.

        One round trip and, at most once a second, another one to read the store's memory use. Every three seconds, and
        when the store has been bound to another archive, checking the archive adds a round trip and a query.
        """
        graph: Graph = request.app.state.graph
        backlog, _ = await asyncio.gather(backlog_of(graph), graph.capacity.read())
        if backlog is None:
            is_cluster = not graph.store.in_order
            return self._answer([NO_LOG], []) if is_cluster and graph.capacity.answering else unavailable(NO_STORE)
        if backlog.rebuild:
            return unavailable(REBUILDING)
        problem = await self._archive_problem(graph, backlog.binding)
        if isinstance(problem, WrongArchive):
            return unavailable(str(problem))
        if isinstance(problem, StoreUnavailable):
            return unavailable(problem.reason if isinstance(problem, StoreNotReady) else NO_STORE)
        reasons = reasons_against(graph, backlog, self._worker_lag, self._max_archive_lag)
        warnings = [*([NO_ARCHIVE] if problem else []), *warnings_about(backlog, self._archive_lag, graph.log.limit)]
        return self._answer(list(reasons), warnings)

    def _answer(self, reasons: list[str], warnings: list[str]) -> Response:
        """Return the response of a process that can serve pages. `reasons` say why it is degraded, if it is."""
        if reasons and not self._while_degraded:
            return unavailable(reasons[0])
        warnings = [*reasons, *warnings]
        return respond({"status": "ready", **({"warnings": warnings} if warnings else {})})

    async def _archive_problem(self, graph: Graph, binding: str) -> GraphError | None:
        """Return the error if the store and the archive cannot be used together, else None.

        The result is cached for three seconds, unless the store does not answer or its binding to an archive changes.
        """
        now = asyncio.get_running_loop().time()
        if binding != self._binding or now >= self._next_check:
            self._binding, self._next_check = binding, now + CHECK_SECONDS
            self._problem = await check_archive(graph)
            if isinstance(self._problem, StoreUnavailable):
                self._next_check = now
        return self._problem


async def backlog_of(graph: Graph) -> Backlog | None:
    """Return the backlog of the log; None if the shard that holds the log does not answer. One round trip."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            return await graph.backlog()
    except (StoreUnavailable, TimeoutError):
        return None


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


def reasons_against(graph: Graph, backlog: Backlog, worker_lag: timedelta, max_archive_lag: timedelta) -> Iterator[str]:
    """Yield the reasons why the process is degraded: changes are refused, or data is too old. Each states a remedy."""
    if backlog.ahead_seconds > MAX_AHEAD.total_seconds():
        yield (
            f"The store's clock, or its log, is {backlog.ahead_seconds / 3600:,.1f} hours ahead of this process, so "
            "changes are refused. Correct the clocks of the store's host and of this one."
        )
    yield from reasons_of_memory(graph.capacity)
    if backlog.length >= graph.log.limit - graph.log.limit // RESERVE:
        yield (
            f"The log holds {backlog.length:,} of {graph.log.limit:,} events, so changes other than deletions, "
            f"unfollows, blocks and log-outs are refused. {LOG_ADVICE}"
        )
    if backlog.unprojected_seconds > worker_lag.total_seconds():
        yield (
            f"The worker is {duration(backlog.unprojected_seconds)} behind the log. Check that a worker is "
            "running, and read its log."
        )
    if backlog.unarchived_seconds > max_archive_lag.total_seconds():
        yield (
            f"The archive is {duration(backlog.unarchived_seconds)} behind the log. Check that a worker is "
            "running and that the SQL database answers."
        )


def reasons_of_memory(capacity: Capacity) -> Iterator[str]:
    """Yield the reason, with a remedy, if the store is too full for changes or refuses them."""
    if capacity.is_full:
        yield (
            f"The store uses {capacity.fullness:.0%} of its memory, so changes other than deletions, unfollows, blocks "
            "and log-outs are refused. Raise its `maxmemory`, add servers, or lower FANLINE_HOT_POSTS or "
            "FANLINE_LOG_RETENTION."
        )
    elif capacity.refusal:
        kind = capacity.refusal.partition(" ")[0]
        yield f"The store refuses all changes, including deletions: {REFUSALS.get(kind, OTHER_REFUSAL)}"


def warnings_about(backlog: Backlog, archive_lag: timedelta, limit: int) -> Iterator[str]:
    """Yield warnings for the operator, with remedies."""
    if backlog.alarm:
        yield f"The archiver has stopped: {backlog.alarm}"
    if backlog.unarchived_seconds > archive_lag.total_seconds() or backlog.unarchived > limit / 2:
        yield (
            f"The archive is {duration(backlog.unarchived_seconds)} behind the log; {backlog.unarchived:,} "
            f"{'event is' if backlog.unarchived == 1 else 'events are'} not archived. Check that a worker is running "
            "and that the SQL database answers."
        )
    if backlog.length > NEARLY_FULL * limit:
        yield (
            f"The log holds {backlog.length:,} of {limit:,} events. From 90% on, changes other than deletions, "
            f"unfollows, blocks and log-outs are refused. {LOG_ADVICE}"
        )


def duration(seconds: float) -> str:
    """Return a duration in words: in seconds below two minutes, else in minutes."""
    whole = int(seconds)
    if whole == 1:
        return "1 second"
    return f"{whole} seconds" if whole < 120 else f"{whole // 60:,} minutes"


def unavailable(reason: str) -> Response:
    """Return the response of a process that cannot serve requests."""
    return respond({"status": "unavailable", "reason": reason}, 503)


def respond(body: dict[str, Any], status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(body), status, media_type="application/json")
