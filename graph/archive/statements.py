"""The archive's statements for all databases, and those for SQLite, MySQL and MariaDB that force an index.

The latter first read numbers, in one scan of the index (owner, kind, number) per owner, and then the rows. Otherwise,
optimizers would choose a full table scan even for a few owners, because `number` is the primary key and the sort order.
"""

from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    UnaryExpression,
    Update,
    bindparam,
    column,
    func,
    literal_column,
    select,
    text,
    union_all,
    update,
)
from sqlalchemy.sql.selectable import Subquery

from graph.archive.rows import CLOSED_REPORT, ENDED_LIKE, FOLLOW, LIKE, POST, REDACTED, REPORT, REPOST
from graph.archive.tables import CREDENTIALS, EVENTS, NUMBER, STATE, TERMS
from graph.post_lists import LIST_COLUMNS, TIMELINE, PostList

MAX_UNION_TERMS = 256  # SQLite allows 500
MAX_LIST_LENGTH = 900  # from 1,000 on, MariaDB turns the list into a table and scans all events of each owner
NO_OWNER = -1
POST_KIND: ColumnElement[str] = literal_column(f"'{POST}'")
BY_PAIR = "FORCE INDEX (events_by_pair)"
SQLITE_BY_PAIR = "INDEXED BY events_by_pair"
BY_KIND = "FORCE INDEX (events_by_kind)"
SQLITE_BY_KIND = "INDEXED BY events_by_kind"
FORCED_INDEX = {"sqlite": "INDEXED BY {}", "mysql": "FORCE INDEX ({})"}


class ListScan(NamedTuple):
    """A read of the posts of an owner's list with numbers between `low` and `high`, both exclusive."""

    owner: int
    low: int
    high: int
    limit: int


@cache
def state() -> Select[Any]:
    """Return the statement that selects the columns of `ArchiveState`."""
    return select(STATE.c.id, STATE.c.store, STATE.c.watermark, STATE.c.note)


@cache
def watermark() -> Select[Any]:
    """Return the statement that selects the archive watermark."""
    return select(STATE.c.watermark)


@cache
def events() -> Select[Any]:
    """Return the statement that selects the columns of `EventRow`. Callers add conditions."""
    return select(EVENTS.c.number, EVENTS.c.kind, EVENTS.c.actor, EVENTS.c.subject, EVENTS.c.body)


@cache
def events_by_number() -> Select[Any]:
    """Return the statement for the events whose numbers are in the parameter `numbers`."""
    return events().where(EVENTS.c.number.in_(bindparam("numbers", expanding=True)))


def events_of_kind(kind: str) -> Select[Any]:
    """Return the statement that selects the events of a kind. It uses the index (kind, number)."""
    return _of_kind(events(), kind)


def numbers_of_kind(kind: str) -> Select[Any]:
    """Return the statement that selects the numbers of the events of a kind. It uses the index (kind, number)."""
    return _of_kind(select(EVENTS.c.number), kind)


def _of_kind(query: Select[Any], kind: str) -> Select[Any]:
    of_kind = query.where(EVENTS.c.kind == kind)
    return of_kind.with_hint(EVENTS, BY_KIND, "mysql").with_hint(EVENTS, SQLITE_BY_KIND, "sqlite")


@lru_cache(maxsize=64)
def first_events(dialect: str, owner: str, kinds: tuple[str, ...] | None, forward: bool) -> Select[Any]:
    """Return the statement for the first `count` events of `owners` and these kinds between `low` and `high`.

    `owner` is `actor` or `subject` or, if `kinds` is None, the column that holds the owners of one kind of list. The
    statement forces the index, so it is for SQLite, MySQL and MariaDB only. SQLite stops each scan early; MySQL and
    MariaDB read all index entries of the owners between `low` and `high`.
    """
    number, owner_column, kind = column("number", NUMBER), column(owner, NUMBER), column("kind", String())
    source = text(f"events {FORCED_INDEX[dialect].format(f'events_by_{owner}')}")
    within = (
        select(number)
        .select_from(source)
        .where(owner_column.in_(bindparam("owners", expanding=True)), _between(number))
    )
    if kinds is not None:
        within = within.where(kind == kinds[0] if len(kinds) == 1 else kind.in_(kinds))
    return _rows(within.order_by(page_order(number, forward)).limit(bindparam("count")), forward)


def post_numbers(dialect: str, forward: bool) -> Select[Any]:
    """Return the statement for the first `count` posts of all authors between `low` and `high`, in an index scan.

    For SQLite, MySQL and MariaDB.
    """
    number = column("number", NUMBER)
    source = text(f"events {FORCED_INDEX[dialect].format('events_by_kind')}")
    within = select(number).select_from(source).where(column("kind", String()) == POST_KIND, _between(number))
    return within.order_by(page_order(number, forward)).limit(bindparam("count"))


def page_order(numbers: ColumnElement[int], forward: bool) -> UnaryExpression[int]:
    """Return the sort order for the direction of paging."""
    return numbers.desc() if forward else numbers.asc()


def list_index(post_list: PostList) -> str:
    """Return the hint that makes MySQL and MariaDB use the index of the lists of one kind."""
    return f"FORCE INDEX (events_by_{post_list.column})"


def in_list(post_list: PostList, owner: Any) -> ColumnElement[bool]:
    """Return the condition that an event is the row of a post in an owner's list."""
    of_owner: ColumnElement[bool] = EVENTS.c[post_list.column] == owner
    if post_list.kind is None:
        return of_owner
    kind: ColumnElement[str] = EVENTS.c.kind
    return of_owner & (
        (_not_in_index(kind) if post_list.column in LIST_COLUMNS else kind) == literal_column(f"'{post_list.kind}'")
    )


def _between(numbers: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that numbers lie between the parameters `low` and `high`, both exclusive."""
    return (numbers > bindparam("low")) & (numbers < bindparam("high"))


def _rows(numbers: Select[Any], forward: bool) -> Select[Any]:
    """Return the statement that reads the rows of the selected numbers, in the direction of paging."""
    chosen = numbers.subquery()
    joined = events().join(chosen, chosen.c.number == EVENTS.c.number)
    return joined.order_by(page_order(EVENTS.c.number, forward))


@lru_cache(maxsize=64)
def merged_by_union(terms: int, forward: bool) -> Select[Any]:
    """Return the statement that merges timelines for MySQL and MariaDB: a union of limited scans, one per author."""
    scans = index_scans(terms, forward, TIMELINE)
    first = select(scans.c.number).order_by(page_order(scans.c.number, forward)).limit(bindparam("count"))
    return _rows(first, forward)


def leading_authors(authors: Sequence[int], forward: bool) -> Select[Any]:
    """Return the statement that selects the `count` authors whose posts can be on the page, for MySQL and MariaDB.

    These are the authors whose first posts in the window come earliest in the direction of paging. The databases find
    them in a loose index scan.
    """
    first = (func.max if forward else func.min)(EVENTS.c.number).label("first")
    author = EVENTS.c[TIMELINE.column].label("author")
    among = select(author, first).where(_between(EVENTS.c.number)).group_by(author)
    parts = [
        among.where(author.in_(authors[at : at + MAX_LIST_LENGTH])) for at in range(0, len(authors), MAX_LIST_LENGTH)
    ]
    every = union_all(*parts).subquery()
    return select(every.c.author).order_by(page_order(every.c.first, forward)).limit(bindparam("count"))


@lru_cache(maxsize=64)
def slices(terms: int, forward: bool, post_list: PostList) -> Select[Any]:
    """Return the statement for `terms` limited scans of the lists of one kind.

    Each row begins with its scan's position. `scan_parameters` builds the parameters.
    """
    scans = index_scans(terms, forward, post_list)
    rows = events().join(scans, scans.c.number == EVENTS.c.number)
    return rows.with_only_columns(scans.c.position, *rows.selected_columns, maintain_column_froms=True)


def index_scans(terms: int, forward: bool, post_list: PostList) -> Subquery:
    """Return a subquery for `terms` limited scans of the lists of one kind, with rows of (position, number)."""
    parts = []
    for position in range(terms):
        within = (EVENTS.c.number > bindparam(f"low{position}")) & (EVENTS.c.number < bindparam(f"high{position}"))
        scan = select(EVENTS.c.number).where(in_list(post_list, bindparam(f"owner{position}")), within)
        scan = scan.with_hint(EVENTS, list_index(post_list), "mysql")
        limited = scan.order_by(page_order(EVENTS.c.number, forward)).limit(bindparam(f"limit{position}")).subquery()
        parts.append(select(literal_column(str(position)).label("position"), limited.c.number))
    return union_all(*parts).subquery()


@lru_cache(maxsize=32)
def counts(terms: int, owner: str, kind: str) -> Select[Any]:
    """Return the statement that counts the events of one kind for each of `terms` owners, which are actors or subjects.

    Each row has the position of the owner and the count. `scan_parameters` builds the parameters.
    """
    parts = []
    for position in range(terms):
        within = (EVENTS.c.number > bindparam(f"low{position}")) & (EVENTS.c.number < bindparam(f"high{position}"))
        of_owner = EVENTS.c[owner] == bindparam(f"owner{position}")
        of_kind: ColumnElement[str] = literal_column(f"'{kind}'")
        count = select(func.count()).select_from(EVENTS).where(of_owner, EVENTS.c.kind == of_kind, within)
        number = count.with_hint(EVENTS, f"FORCE INDEX (events_by_{owner})", "mysql").scalar_subquery()
        parts.append(select(literal_column(str(position)).label("position"), number.label("events")))
    found = union_all(*parts).subquery()
    return select(found.c.position, found.c.events)


@lru_cache(maxsize=16)
def post_counts(terms: int, post_list: PostList) -> Select[Any]:
    """Return the statement that counts the posts in `terms` lists of one kind.

    Each row has the position of the list and the count. `scan_parameters` builds the parameters.
    """
    parts = []
    for position in range(terms):
        within = (EVENTS.c.number > bindparam(f"low{position}")) & (EVENTS.c.number < bindparam(f"high{position}"))
        count = (
            select(func.count()).select_from(EVENTS).where(in_list(post_list, bindparam(f"owner{position}")), within)
        )
        number = count.with_hint(EVENTS, list_index(post_list), "mysql").scalar_subquery()
        parts.append(select(literal_column(str(position)).label("position"), number.label("posts")))
    found = union_all(*parts).subquery()
    return select(found.c.position, found.c.posts)


@lru_cache(maxsize=32)
def segments_of_codes(terms: int, forward: bool) -> Select[Any]:
    """Return the statement for the first `count` segments of each of `terms` codes of the search index.

    Each row has the position of the code and a segment. `code_parameters` builds the parameters.
    """
    parts = []
    for position in range(terms):
        of_code = (TERMS.c.code == bindparam(f"code{position}")) & _between(TERMS.c.segment)
        scan = select(TERMS.c.segment).where(of_code).order_by(page_order(TERMS.c.segment, forward))
        limited = scan.limit(bindparam("count")).subquery()
        parts.append(select(literal_column(str(position)).label("position"), limited.c.segment))
    scans = union_all(*parts).subquery()
    return select(scans.c.position, scans.c.segment).where(scans.c.position < bindparam("codes"))


def code_parameters(codes: Sequence[int]) -> dict[str, int]:
    """Return the parameters of `segments_of_codes`. The results of surplus scans are left out."""
    padded = [*codes, *[codes[-1]] * (terms_for(len(codes)) - len(codes))]
    return {"codes": len(codes)} | {f"code{at}": code for at, code in enumerate(padded)}


def terms_for(reads: int) -> int:
    """Return the number of scans rounded up to a power of two, so that few different statements are prepared."""
    return min(MAX_UNION_TERMS, 1 << (reads - 1).bit_length())


def scan_parameters(reads: Sequence[ListScan], terms: int) -> dict[str, int]:
    """Return the parameters of index scans. Surplus scans find nothing."""
    padded = [*reads, *[ListScan(NO_OWNER, 0, 0, 0)] * (terms - len(reads))]
    return {f"{name}{at}": value for at, read in enumerate(padded) for name, value in read._asdict().items()}


def redact_posts(ids: Sequence[int]) -> Update:
    """Return the statement that removes the posts among these events from their lists, and deletes their content."""
    posts = EVENTS.c.number.in_(ids) & (_not_in_index(EVENTS.c.kind) == POST)
    return update(EVENTS).where(posts).values(kind=REDACTED, body=None, **dict.fromkeys(LIST_COLUMNS))


@cache
def end_follows() -> Update:
    """Return the statement that sets `ended` to an unfollow's number in earlier follows of the same pair of users.

    `ended` is only lowered, so it is the number of the first unfollow after the follow, regardless of the order in
    which unfollows are applied.
    """
    of_pair = (EVENTS.c.subject == bindparam("followee")) & (EVENTS.c.actor == bindparam("follower"))
    earlier = (EVENTS.c.number < bindparam("unfollow")) & (_not_in_index(EVENTS.c.kind) == FOLLOW)
    unended = EVENTS.c.ended.is_(None) | (EVENTS.c.ended > bindparam("unfollow"))
    return update(EVENTS).where(of_pair, earlier, unended).values(ended=bindparam("unfollow"))


@cache
def end_likes() -> Update:
    """Return the statement that sets `ended` to a like's or unlike's number in the user's earlier likes of the post.

    The kind of the likes becomes `EndedLike`, so that pages do not scan them. `ended` is only lowered, so the order in
    which events are applied does not matter.
    """
    of_pair = (EVENTS.c.subject == bindparam("post")) & (EVENTS.c.actor == bindparam("user"))
    kind = _not_in_index(EVENTS.c.kind)
    earlier = (EVENTS.c.number < bindparam("event")) & ((kind == LIKE) | (kind == ENDED_LIKE))
    unended = EVENTS.c.ended.is_(None) | (EVENTS.c.ended > bindparam("event"))
    return update(EVENTS).where(of_pair, earlier, unended).values(kind=ENDED_LIKE, ended=bindparam("event"))


def likes_between(posts: Collection[int], users: Collection[int]) -> Select[Any]:
    """Return the statement for the likes of these posts by these users, including ended ones."""
    likes = EVENTS.c.subject.in_(posts) & EVENTS.c.actor.in_(users)
    of_kind = _not_in_index(EVENTS.c.kind).in_((LIKE, ENDED_LIKE))
    columns = select(EVENTS.c.number, EVENTS.c.actor, EVENTS.c.subject, EVENTS.c.ended)
    return columns.where(likes, of_kind).with_hint(EVENTS, BY_PAIR, "mysql").with_hint(EVENTS, SQLITE_BY_PAIR, "sqlite")


def owners(column: str, kind: str | None, after: int, limit: int) -> Select[Any]:
    """Return the statement for the first `limit` values above `after` of an indexed column, for one kind or all kinds.

    The whole index is scanned if most events are of other kinds.
    """
    owner, index = EVENTS.c[column], f"events_by_{column}"
    query = select(owner).where(owner > after).group_by(owner).order_by(owner).limit(limit)
    query = query if kind is None else query.where(_not_in_index(EVENTS.c.kind) == kind)
    query = query.with_hint(EVENTS, FORCED_INDEX["mysql"].format(index), "mysql")
    return query.with_hint(EVENTS, FORCED_INDEX["sqlite"].format(index), "sqlite")


@cache
def change_credentials() -> Update:
    """Return the statement that sets a user's login and password hash, and the number of the event that set it."""
    of_user = update(CREDENTIALS).where(CREDENTIALS.c.user == bindparam("owner"))
    return of_user.values(login=bindparam("name"), hash=bindparam("secret"), number=bindparam("at"))


@cache
def end_reposts() -> Update:
    """Return the statement that redacts the reposts of an original that a user made before a certain repost or undo.

    It also removes these reposts from lists. The order in which reposts and undos are applied does not matter.
    """
    of_pair = (EVENTS.c.subject == bindparam("original")) & (EVENTS.c.actor == bindparam("user"))
    earlier = (EVENTS.c.number < bindparam("change")) & (_not_in_index(EVENTS.c.kind) == REPOST)
    return update(EVENTS).where(of_pair, earlier).values(kind=REDACTED, body=None, **dict.fromkeys(LIST_COLUMNS))


@cache
def close_reports() -> Update:
    """Return the statement that closes all reports about a subject made before an event, so that pages skip them.

    The order in which the events are applied does not matter.
    """
    earlier = (EVENTS.c.number < bindparam("event")) & (_not_in_index(EVENTS.c.kind) == REPORT)
    return update(EVENTS).where(EVENTS.c.subject == bindparam("of"), earlier).values(kind=CLOSED_REPORT)


def _not_in_index(kinds: ColumnElement[str]) -> ColumnElement[str]:
    """Return the kinds as an expression that planners cannot look up in an index.

    Otherwise, SQLite would read all follows of the follower; PostgreSQL and MariaDB, without statistics, all posts.
    """
    return kinds + ""
