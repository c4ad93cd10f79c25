"""`fanline suspend`, `unsuspend`, `remove` and `reports`: moderation of users and posts by operators."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import orjson
import typer

from graph import Graph
from graph.errors import ProblemCode, Rejected
from graph.model import time_of
from graph.moderation import Report
from graph.visibility.views import SYSTEM
from resolvers import ids
from resolvers.errors import BadInput
from server.cli.messages import say
from server.cli.stores import describe, existing_store_of, run, user_with_login
from server.settings import Settings, SettingsError

BATCH = 100


def suspend(login: str) -> None:
    """Suspend a user. Raises SettingsError for unknown users."""
    settings = Settings.load()

    async def change(graph: Graph) -> bool:
        return await graph.moderation.suspend(await user_with_login(graph, settings, login))

    with existing_store_of(settings):
        suspended = run(settings, change)
    say(f"{login} {'is now' if suspended else 'was already'} suspended.")


def unsuspend(login: str) -> None:
    """End the suspension of a user. Raises SettingsError for unknown users."""
    settings = Settings.load()

    async def change(graph: Graph) -> bool:
        return await graph.moderation.unsuspend(await user_with_login(graph, settings, login))

    with existing_store_of(settings):
        lifted = run(settings, change)
    say(f"{login} {'is no longer' if lifted else 'was not'} suspended.")


def remove(post_id: str) -> None:
    """Permanently delete a post. Raises typer.BadParameter for a malformed id, and SettingsError for unknown posts."""
    post, settings = post_number(post_id), Settings.load()

    async def delete(graph: Graph) -> bool:
        try:
            return await graph.moderation.remove(post) is not None
        except Rejected as rejected:
            if any(problem.code is not ProblemCode.NOT_FOUND for problem in rejected.problems):
                raise
            raise SettingsError(f"There is no post {post_id} in {describe(settings)}.") from None

    with existing_store_of(settings):
        removed = run(settings, delete)
    say(f"The post {post_id} {'is removed' if removed else 'was already deleted'}.")


def post_number(text: str) -> int:
    """Return the number of a post, given its number or global id. Raises typer.BadParameter for any other text."""
    if text.isdecimal() and text.isascii():
        return int(text)
    with suppress(BadInput):
        number = ids.number(ids.Kind.POST, text)
        if number is not None:
            return number
    raise typer.BadParameter(f"{text!r} is not the id of a post.")


def reports(action: str, numbers: Sequence[int]) -> bool:
    """List the open reports, or close the reports with these numbers. Return False if any do not exist.

    Raises SettingsError if there is no store. Raises typer.BadParameter for an unknown action, for `close` without
    numbers, and for `list` with numbers.
    """
    if action not in ("list", "close"):
        raise typer.BadParameter(f"{action!r} is not an action; the actions are: list, close.")
    if (action == "close") is not bool(numbers):
        raise typer.BadParameter("Name the reports to close." if action == "close" else "`list` takes no reports.")
    settings = Settings.load()

    async def work(graph: Graph) -> bool:
        return await close(graph, numbers) if action == "close" else await show(graph)

    with existing_store_of(settings):
        return run(settings, work)


async def show(graph: Graph) -> bool:
    """Print the open reports as lines of JSON, oldest first."""
    count = 0
    batch: list[Report] = []
    async for report in graph.moderation.reports():
        count += 1
        batch.append(report)
        if len(batch) == BATCH:
            await write(graph, batch)
            batch = []
    await write(graph, batch)
    if not count:
        say("There are no open reports.")
    return True


async def write(graph: Graph, batch: Sequence[Report]) -> None:
    """Print reports as lines of JSON."""
    posts = [report.subject for report in batch if report.author is not None]
    users = {user for report in batch for user in (report.user, report.author or report.subject)}
    texts = {post.id: post.text for post in await graph.posts.get_many(SYSTEM, posts) if post is not None}
    logins = {user.id: user.login for user in await graph.users.get_many(sorted(users)) if user is not None}
    for line in lines(batch, logins, texts):
        sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def lines(batch: Iterable[Report], logins: dict[int, str], texts: dict[int, str]) -> Iterable[dict[str, Any]]:
    """Yield the line of each report. The text of a deleted post is null."""
    for report in batch:
        line: dict[str, Any] = {
            "report": report.number,
            "at": time_of(report.number).isoformat(),
            "by": logins.get(report.user),
            "reason": report.reason,
            "comment": report.comment,
            "user": logins.get(report.author or report.subject),
        }
        if report.author is not None:
            line |= {"post": ids.encode(ids.Kind.POST, report.subject), "text": texts.get(report.subject)}
        yield line


async def close(graph: Graph, numbers: Sequence[int]) -> bool:
    """Close reports. Print the numbers that belong to no report. Return True if every report exists."""
    named = list(dict.fromkeys(numbers))
    missing = await graph.moderation.close(named)
    for number in missing:
        say(f"There is no report {number}. List them with `fanline reports`.")
    for number in named:
        if number not in missing:
            say(f"Report {number} has been closed, along with all others about the same user or post.")
    return not missing
