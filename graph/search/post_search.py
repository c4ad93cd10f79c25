"""Post search: finds past posts with the same filters that event streams use.

A page is read from the archive alone, up to the archive watermark that was read before the page. Newer posts are not in
the page; a subscription that starts at the watermark sends them. The index of the archive finds candidates, the filter
of event streams decides which of them match, and the store decides which of these posts are deleted or hidden from the
viewer.
"""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from graph.archive.codes import Clause, area_clause, author_clause, keyword_clause
from graph.archive.rows import EventRow, post_of
from graph.archive.usage import count_items
from graph.binding import Binding
from graph.errors import BadFilter
from graph.feed.filters import Box, EventFilter, check_length
from graph.log.encoding import decode
from graph.model import MAX_NUMBER, Page, Post, number_at
from graph.pages.scanning import MOST_SCANNED, scanned_page
from graph.paging import Window
from graph.posts.posts import Posts
from graph.visibility.views import View

MAX_USERS = 100
MAX_KEYWORDS = 20
STEPS_PER_CANDIDATE = 6
"""The cost of comparing a post with the filter, in items (`graph.archive.usage`)."""
SEGMENTS = (4, 16, 64)
"""How many index segments the first, second and further reads scan: few at first, because most words are frequent."""


@dataclass(frozen=True, slots=True)
class Search:
    """A search: its filter, the archive watermark read before its pages, and the range of the posts' numbers.

    It finds posts with numbers between `low` and `high`, both exclusive.
    """

    filter: EventFilter
    watermark: int
    low: int = 0
    high: int = MAX_NUMBER


def post_filter(
    users: Sequence[int] | None = None, keywords: Sequence[str] | None = None, within: Box | None = None
) -> EventFilter:
    """Build the filter of a search from the input of a client. Raises BadFilter like `EventFilter.of`."""
    if users is None and keywords is None and within is None:
        raise BadFilter("The filter is empty. Set 'users', 'keywords' or 'within'.")
    check_length("users", users, MAX_USERS)
    check_length("keywords", keywords, MAX_KEYWORDS)
    return EventFilter.of(users=users, keywords=keywords, within=within)


def clauses_of(filter_: EventFilter) -> list[Clause]:
    """Return the clauses that every post matching the filter satisfies."""
    clauses: list[Clause] = []
    if filter_.keywords is not None:
        clauses.append(keyword_clause(filter_.keywords))
    if filter_.users is not None:
        clauses.append(author_clause(filter_.users))
    if filter_.within is not None:
        clauses.append(area_clause(filter_.within))
    return clauses


class Searches:
    """Searches for posts. A page scans at most `scanned` candidates."""

    def __init__(self, binding: Binding, posts: Posts, *, scanned: int = MOST_SCANNED) -> None:
        self._binding = binding
        self._posts = posts
        self._scan_limit = scanned

    async def begin(self, filter_: EventFilter, since: datetime | None = None, until: datetime | None = None) -> Search:
        """Return a search up to the current archive watermark for posts from `since` on and before `until`.

        One query, shared by concurrent callers. Raises BadFilter if `until` is not later than `since`, and
        ArchiveUnavailable.
        """
        if since is not None and until is not None and since >= until:
            raise BadFilter("'until' must be later than 'since'.")
        low = 0 if since is None else min(max(number_at(since) - 1, 0), MAX_NUMBER)
        high = MAX_NUMBER if until is None else min(max(number_at(until), 0), MAX_NUMBER)
        return Search(filter_, await self._binding.archived_up_to(), low, high)

    async def posts(self, view: View, search: Search, window: Window) -> Page[Post]:
        """Return a page of the posts that match, newest first.

        A page scans at most 2,000 candidates. After that it may be short, even empty, although there are more posts; it
        then has the number at which the next page continues. Up to 16 transactions, one round trip for each with
        matches, and one if users are suspended. Raises ArchiveUnavailable, and ScanLimit if the operation has used up
        its budget.
        """
        archive, clauses = await self._binding.archive(), clauses_of(search.filter)
        suspended = await view.suspended_anywhere()

        def read(rest: Window, turn: int) -> Awaitable[tuple[list[EventRow], Window | None]]:
            return archive.candidates(clauses, rest, SEGMENTS[min(turn, len(SEGMENTS) - 1)], suspended)

        async def show(rows: Sequence[EventRow]) -> list[Post]:
            count_items(STEPS_PER_CANDIDATE * len(rows))
            return await self._visible(view, [row for row in rows if matches(search.filter, row)])

        window = replace(window, low=max(window.low, search.low), high=min(window.high, search.high))
        return await scanned_page(window, read, show, up_to=search.watermark, limit=self._scan_limit)

    async def _visible(self, view: View, rows: Sequence[EventRow]) -> list[Post]:
        """Return the posts of rows that are not deleted and not hidden from the view. One round trip, if any."""
        if not rows:
            return []
        archived = {row.number: post_of(row) for row in rows}
        posts, _ = await self._posts.hydrate(view, list(archived), archived)
        return [posts[number] for number in archived if number in posts]


def matches(filter_: EventFilter, row: EventRow) -> bool:
    """Return True if the event of a row matches the filter, as in a live stream."""
    return filter_.matches(decode(*row))
