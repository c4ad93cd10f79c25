"""Moderation: users report users and posts, and operators suspend users and remove posts.

Operators use the command line and have no account. Their actions are events of separate kinds, or deletions with
`by_operator`. All other events about a user's data are appended only on behalf of that user.

The store has no keys for reports. Reports are read from the archive, and the newest ones from the log.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from graph import keys
from graph.accounts.users import Users, no_account
from graph.archive.rows import CLOSED_REPORT, REPORT, EventRow
from graph.binding import Binding
from graph.commit import Commit
from graph.errors import AccountDeleted, ProblemCode, Rejected
from graph.log.encoding import decode
from graph.log.events import Event
from graph.log.log import IdempotencyKey, Log
from graph.log.moderation_events import Reported, ReportsClosed, UserSuspended, UserUnsuspended
from graph.model import Post, ReportReason
from graph.posts.posts import Posts
from graph.store.store import Store
from graph.text.validation import Check
from graph.visibility.views import View

if TYPE_CHECKING:
    from graph.archive.archive import Archive

PAGE = 1000


class Report(NamedTuple):
    """A report. `author` is the author of the post `subject`, or None if the subject is a user."""

    number: int
    user: int
    subject: int
    author: int | None
    reason: str
    comment: str


class Moderation:
    """Reports, suspensions and removals."""

    def __init__(self, store: Store, commit: Commit, binding: Binding, log: Log, users: Users, posts: Posts) -> None:
        self._store = store
        self._commit = commit
        self._binding = binding
        self._log = log
        self._users = users
        self._posts = posts

    async def suspend(self, user: int) -> bool:
        """Hide a user everywhere and end all the user's sessions; return False if the user was already suspended.

        Raises Rejected (NOT_FOUND) and StoreUnavailable, the latter also if the suspension is committed but not yet in
        effect. Three round trips, regardless of the number of the user's posts.
        """
        return await self._change(UserSuspended(user))

    async def unsuspend(self, user: int) -> bool:
        """End a suspension; return False if the user was not suspended. Same errors and cost as `suspend`."""
        return await self._change(UserUnsuspended(user))

    async def _change(self, body: UserSuspended | UserUnsuspended) -> bool:
        """Commit the change even if it seems redundant: the log may hold an unprojected opposite change."""
        [[id_, number]] = await self._store.read([("HMGET", keys.user(body.user), "id", "suspended")])
        if id_ is None:
            raise no_account()
        try:
            await self._commit([body])
        except AccountDeleted:
            raise no_account() from None
        return (int(number or 0) > 0) is not isinstance(body, UserSuspended)

    async def remove(self, post: int) -> Post | None:
        """Permanently delete a post. Return it, or None if it was already deleted.

        Raises Rejected (NOT_FOUND) and ArchiveUnavailable. Costs the same as `Posts.delete`.
        """
        return await self._posts.remove(post)

    async def report_user(
        self, view: View, viewer: int, user: int, reason: ReportReason, comment: str | None = None
    ) -> None:
        """Report a user to the operators. A repeated report within a day appends nothing.

        Raises Rejected: NOT_FOUND, or INVALID if the user is the viewer or the comment is too long. Two round trips.
        """
        comment = checked(comment)
        if user == viewer:
            raise Rejected.because(ProblemCode.INVALID, "Users cannot report themselves.", "subjectId")
        if (await self._users.visible(view, [user]))[0] is None:
            raise not_found()
        await self._append(Reported(viewer, user, reason.value, comment))

    async def report_post(
        self, view: View, viewer: int, post: int, reason: ReportReason, comment: str | None = None
    ) -> None:
        """Report a post. A repeated report within a day appends nothing.

        Raises Rejected (NOT_FOUND, or INVALID if the comment is too long) and ArchiveUnavailable. Two round trips, plus
        a query for an archived post.
        """
        comment = checked(comment)
        [found] = await self._posts.get_many(view, [post])
        if found is None or found.is_plain_repost:
            raise not_found()
        await self._append(Reported(viewer, post, reason.value, comment, found.author))

    async def _append(self, body: Reported) -> None:
        await self._commit([body], IdempotencyKey("-", f"report:{body.user}:{body.subject}", request="report"))

    async def reports(self) -> AsyncIterator[Report]:
        """Yield the open reports, oldest first.

        One query for every 1,000 reports, and two round trips for every 500 events that are not archived. These events
        are read twice, because a later event can close a report, and only the closed subjects are kept in memory.
        Raises ArchiveUnavailable and StoreUnavailable.
        """
        archive: Archive = await self._binding.archive()
        up_to, head = (await archive.state()).watermark, await self._log.last()
        closed = {
            event.body.subject: event.number
            async for event in self._log.replay(up_to, head)
            if isinstance(event.body, ReportsClosed)
        }
        last = 0
        while rows := await archive.of_kind(REPORT, last, PAGE):
            for report in map(report_in, rows):
                if report.number <= up_to and report.number > closed.get(report.subject, 0):
                    yield report
            last = rows[-1].number
            if len(rows) < PAGE or last > up_to:
                break
        async for event in self._log.replay(up_to, head):
            if isinstance(event.body, Reported) and event.number > closed.get(event.body.subject, 0):
                yield report_of(event)

    async def close(self, numbers: Sequence[int]) -> list[int]:
        """Close reports and all other reports of the same users and posts. Return the numbers that are not reports.

        Closing a closed report appends nothing. One query, and one round trip for each report that is not archived.
        """
        archive: Archive = await self._binding.archive()
        rows = {row.number: row for row in await archive.rows(numbers)}
        missing: list[int] = []
        subjects: dict[int, None] = {}
        for number in numbers:
            event = None if number in rows else await self._log.get(number)
            if number in rows and rows[number].kind in (REPORT, CLOSED_REPORT):
                if rows[number].kind == REPORT:
                    subjects[rows[number].subject or 0] = None
            elif event is not None and isinstance(event.body, Reported):
                subjects[event.body.subject] = None
            else:
                missing.append(number)
        await self._commit([ReportsClosed(subject) for subject in subjects])
        return missing


def report_in(row: EventRow) -> Report:
    """Return the report in a row of the archive."""
    return report_of(decode(*row))


def report_of(event: Event) -> Report:
    """Return the report of a Reported event."""
    body = event.body
    if not isinstance(body, Reported):
        raise TypeError(f"Event {event.number} is not a report.")
    return Report(event.number, body.user, body.subject, body.author, body.reason, body.comment)


def checked(comment: str | None) -> str:
    """Return a normalised comment. Raises Rejected (INVALID)."""
    check = Check()
    comment = check.comment(comment or "")
    check.done()
    return comment


def not_found() -> Rejected:
    """Return the rejection for an unknown, deleted or hidden user or post."""
    return Rejected.because(ProblemCode.NOT_FOUND, "This user or post does not exist.", "subjectId")
