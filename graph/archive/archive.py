"""The archive: an SQL database that holds every event of the log, and the credentials of its users.

The archiver appends the events that the projections have applied. Rows of events are never deleted: deleting a post
only removes the content of its row. SQLAlchemy builds the statements for SQLite, PostgreSQL, MySQL and MariaDB.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from graph.archive import names, notifications, pages, reposts, statements
from graph.archive.append import add_credentials, advance, append, codes_of, erased, insert_late, lock
from graph.archive.database import TIMEOUT_SECONDS, Database
from graph.archive.erasures import Erasures
from graph.archive.migrations import SchemaState
from graph.archive.pages import IDS_PER_QUERY
from graph.archive.public_reads import PublicReads
from graph.archive.rows import ArchiveState, Credential, EventRow, FoundPosts, LikeRow, post_of
from graph.archive.search_indexes import SearchIndexes
from graph.archive.tables import CREDENTIALS, STATE
from graph.chunks import chunks
from graph.errors import ArchiveUnavailable
from graph.log.notification_groups import Group
from graph.model import MAX_NUMBER, Post
from graph.paging import Window
from graph.post_lists import TIMELINE, PostList

T = TypeVar("T")


class Archive(SearchIndexes, PublicReads, Erasures):
    """The archive at one URL. Connects on first use.

    Every method except `close` raises ArchiveUnavailable if the database does not answer within `timeout` seconds. A
    write may nevertheless have been committed; repeating it is safe. With `migrates=False`, an outdated schema raises
    SchemaOutdated. The constructor raises ValueError if the URL is not valid.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT_SECONDS, migrates: bool = True) -> None:
        self.database = Database(url, timeout, migrates=migrates)

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in its own transaction and commit it. All access to the data goes through this method."""
        return await self.database.transaction(work)

    async def migrate(self) -> None:
        """Upgrade the schema to the current revision. If this fails, the next transaction tries again.

        Raises SchemaTooNew if a newer version of Fanline has upgraded the schema, and SchemaOutdated if the schema
        is outdated and `migrates` is False.
        """
        await self.database.migrate()

    async def schema_state(self) -> SchemaState:
        """Return whether the schema is absent, outdated or current, without creating it. Raises SchemaTooNew."""
        return await self.database.schema_state()

    async def state(self) -> ArchiveState:
        """Return the identities of the archive and of its store, the archive watermark, and the note. One query."""

        async def work(connection: AsyncConnection) -> ArchiveState:
            return ArchiveState(*(await connection.execute(statements.state())).one())

        return await self._transaction(work)

    async def bind(self, store: str, *, replacing: str | None, unused_only: bool) -> bool:
        """Bind the archive to `store` if it is still bound to `replacing`, or to no store if that is None.

        With `unused_only`, bind it only while the archive watermark is 0. Return True if the binding was changed.
        """
        expected = STATE.c.store.is_(None) if replacing is None else STATE.c.store == replacing
        query = update(STATE).where(expected).values(store=store)
        query = query.where(STATE.c.watermark == 0) if unused_only else query

        async def work(connection: AsyncConnection) -> bool:
            return (await connection.execute(query)).rowcount == 1

        return await self._transaction(work)

    async def set_note(self, note: str | None) -> None:
        """Set the note, which describes the data that seeding loads."""
        await self._transaction(lambda connection: connection.execute(update(STATE).values(note=note)))

    async def append(
        self,
        rows: Sequence[EventRow],
        credentials: Sequence[Credential],
        *,
        store: str,
        watermark: int,
        up_to: int,
        indexes: bool = True,
        before_commit: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Insert events of the log up to the number `up_to`, and raise the archive watermark to `up_to`.

        Events that the archive already holds stay unchanged, and so do credentials with the same or a higher number. A
        PostDeleted removes the content of its post, and an Unfollowed ends the earlier follows of its pair, regardless
        of the order in which the events arrive. Without `indexes`, new posts and sign-ups are not added to the search
        indexes: the worker adds them later.

        One transaction, which writes nothing if it fails or if `before_commit`, which is awaited last, raises an error.
        Raises ArchiveChanged unless the archive is bound to `store` and its watermark is `watermark`; ConflictingEvent
        if the archive holds another event under one of the numbers; EventsRefused if the body of an event is damaged or
        the database refuses a value; and ValueError for a number above `up_to`.

        Two statements per batch, and more for certain events: one for notifications, one per unfollow, two for
        credentials, four for names, three for events up to the watermark, five or more for deletions, and for posts
        five or more plus three per 900 terms of their texts.
        """
        if any(row.number > up_to for row in rows):
            raise ValueError(f"no event in the batch may have a number above {up_to}")

        codes = await codes_of(rows) if indexes else {}

        async def work(connection: AsyncConnection) -> None:
            await advance(connection, store, watermark, up_to)
            kept = await erased(connection, rows, watermark)
            await append(connection, kept, codes, watermark)
            await (names.add(connection, kept, watermark) if indexes else names.postpone(connection, kept))
            await add_credentials(connection, credentials)
            if before_commit is not None:
                await before_commit()

        await self._transaction(work)

    async def insert(self, rows: Sequence[EventRow], *, store: str) -> None:
        """Insert the events that the archive lacks. Events that the archive holds stay unchanged.

        One transaction. Raises ArchiveChanged if the archive is not bound to `store` or an event is above the
        watermark.
        """
        if rows:
            codes = await codes_of(rows)

            async def work(connection: AsyncConnection) -> None:
                watermark = await insert_late(connection, rows, codes, store)
                await names.add(connection, await erased(connection, rows, watermark), watermark)

            await self._transaction(work)

    async def get_many(self, ids: Sequence[int]) -> list[Post | None]:
        """Return the posts with these ids, in this order, with None for each that is missing or deleted.

        One query per 2,000 ids.
        """
        rows = await self._transaction(lambda connection: pages.posts_by_id(connection, ids)) if ids else []
        found = {row.number: post_of(row) for row in rows}
        return [found.get(id_) for id_ in ids]

    async def look_up(self, ids: Sequence[int]) -> FoundPosts:
        """Return the live posts among these ids, and the archive watermark that was read before them."""

        async def work(connection: AsyncConnection) -> FoundPosts:
            watermark = int((await connection.execute(statements.watermark())).scalar_one())
            rows = await pages.posts_by_id(connection, ids)
            return FoundPosts({row.number: post_of(row) for row in rows}, watermark)

        return await self._transaction(work)

    async def merge(self, authors: Collection[int], window: Window) -> list[Post]:
        """Return one window of the merged timelines of these authors, in the direction of paging.

        One query; two on MySQL and MariaDB for more than 256 authors. The query reads at most `window.count` index
        entries per author, which takes about 50 ms for 5,000 authors.
        """
        if not authors:
            return []
        rows = await self._transaction(lambda connection: pages.merge(connection, authors, window))
        return list(map(post_of, rows))

    async def slices(self, reads: Sequence[tuple[int, Window]], post_list: PostList = TIMELINE) -> list[list[Post]]:
        """Return, for each (owner, window), the posts of the owner's list in the direction of paging.

        Costs the same as `post_rows`.
        """
        return [list(map(post_of, rows)) for rows in await self.post_rows(reads, post_list)]

    async def post_rows(
        self, reads: Sequence[tuple[int, Window]], post_list: PostList = TIMELINE
    ) -> list[list[EventRow]]:
        """Return, for each (owner, window), the rows of the posts in the owner's list in the direction of paging.

        One query per 256 reads in one direction. Each read is a limited index scan.
        """
        return (
            await self._transaction(lambda connection: pages.post_rows(connection, reads, post_list)) if reads else []
        )

    async def post_ids(self, owner: int, low: int, high: int, post_list: PostList = TIMELINE) -> set[int]:
        """Return the ids in (`low`, `high`] of the posts in an owner's list. One query."""
        return await self._transaction(lambda connection: pages.post_ids(connection, owner, low, high, post_list))

    async def post_counts(
        self, reads: Sequence[tuple[int, int]], post_list: PostList = TIMELINE
    ) -> tuple[list[int], int]:
        """Return, for each (owner, id), the number of posts in the list up to the id, and also the archive watermark.

        All values come from one snapshot. One query per 256 reads, and one or two for the watermark.
        """
        return await self._counts(partial(pages.post_counts, post_list=post_list), reads)

    async def like_counts(self, reads: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
        """Return, for each (post, number), the count of live likes up to the number, and also the archive watermark.

        The values come from one snapshot, at the same cost as `post_counts`.
        """
        return await self._counts(pages.like_counts, reads)

    async def _counts(
        self,
        count: Callable[[AsyncConnection, Sequence[tuple[int, int]]], Awaitable[list[int]]],
        reads: Sequence[tuple[int, int]],
    ) -> tuple[list[int], int]:
        async def work(connection: AsyncConnection) -> tuple[list[int], int]:
            if connection.dialect.name == "postgresql":  # the other databases read a snapshot by default
                await connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            watermark = int((await connection.execute(statements.watermark())).scalar_one())
            return await count(connection, reads), watermark

        return await self._transaction(work)

    async def owners(self, post_list: PostList, after: int, limit: int) -> list[int]:
        """Return the first `limit` owners with ids above `after` that have posts in their list of the kind `post_list`.

        One query; two on PostgreSQL.
        """
        return await self._transaction(lambda connection: pages.owners(connection, post_list, after, limit))

    async def rows(self, ids: Collection[int]) -> list[EventRow]:
        """Return the rows of the events with these ids that the archive holds. One query per 2,000 ids."""
        return await self._transaction(lambda connection: pages.rows(connection, ids)) if ids else []

    async def kinds_of(self, ids: Collection[int]) -> dict[int, str]:
        """Return the kinds of these events by number, `Redacted` for deleted posts.

        Events that the archive lacks are left out. One query per 2,000 ids.
        """
        return await self._transaction(lambda connection: pages.kinds_of(connection, ids)) if ids else {}

    async def range(self, after: int, up_to: int, limit: int) -> list[EventRow]:
        """Return the first `limit` events in (`after`, `up_to`], in ascending order. One query; two on PostgreSQL."""

        async def work(connection: AsyncConnection) -> list[EventRow]:
            rows = await pages.first_rows(connection, statements.events(), after, up_to, limit)
            return [EventRow(*row) for row in rows]

        return await self._transaction(work)

    async def likers(self, reads: Sequence[tuple[int, int, Collection[int]]]) -> list[set[int]]:
        """Return, for each (post, number, users), which of the users liked the post as of the event with the number.

        One transaction, with one query per read of up to 900 users and one for the watermark. Raises ArchiveUnavailable
        unless the archive holds all events up to the highest of the numbers.
        """

        async def work(connection: AsyncConnection) -> list[set[int]]:
            watermark = int((await connection.execute(statements.watermark())).scalar_one())
            if watermark < max((up_to for _, up_to, _ in reads), default=0):
                raise ArchiveUnavailable(f"the archive ends at event {watermark}")
            return [
                {like.user for like in await pages.likes_between(connection, [post], users) if like.was_live(up_to)}
                for post, up_to, users in reads
            ]

        return await self._transaction(work)

    async def liked_among(self, user: int, posts: Collection[int], up_to: int) -> set[int]:
        """Return the posts among these that a user likes now. Likes with numbers above `up_to` do not count.

        One query per 900 posts.
        """
        found = await self._transaction(lambda connection: pages.likes_between(connection, posts, [user]))
        return {like.post for like in found if like.ended is None and like.number <= up_to}

    async def likes(self, owner: str, reads: Sequence[tuple[int, Window]]) -> list[list[LikeRow]]:
        """Return, for each (id, window), the live likes in the window in the direction of paging.

        The ids are those of posts if `owner` is `subject`, or of users if it is `actor`. One transaction, with one
        query per read.
        """

        async def work(connection: AsyncConnection) -> list[list[LikeRow]]:
            return [await pages.live_likes(connection, owner, id_, window) for id_, window in reads]

        return await self._transaction(work)

    async def clear_reposts(self, limit: int, store: str) -> bool:
        """Remove the next `limit` plain reposts from the column of quotes, where earlier versions put them.

        Return False if none were left. One query, and a transaction of up to five statements if some were left. Raises
        ArchiveChanged.
        """
        if await self._transaction(reposts.progress) is None:
            return False

        async def work(connection: AsyncConnection) -> bool:
            await lock(connection, store)
            return await reposts.step(connection, limit)

        return await self._transaction(work)

    async def liked_posts(self, after: int, limit: int) -> list[int]:
        """Return the first `limit` posts with ids above `after` that have live likes. One query; two on PostgreSQL."""
        return await self._transaction(lambda connection: pages.liked_posts(connection, after, limit))

    async def of_kind(self, kind: str, after: int, limit: int) -> list[EventRow]:
        """Return the first `limit` events of a kind with numbers above `after`. One query; two on PostgreSQL."""

        async def work(connection: AsyncConnection) -> list[EventRow]:
            query = statements.events_of_kind(kind)
            rows = await pages.first_rows(connection, query, after, MAX_NUMBER, limit)
            return [EventRow(*row) for row in rows]

        return await self._transaction(work)

    async def by_actor(self, actors: Collection[int], kinds: Sequence[str], after: int, limit: int) -> list[EventRow]:
        """Return the first `limit` events above `after` of these actors and kinds. One query per 900 actors."""
        return await self._transaction(
            lambda connection: pages.by_owners(connection, "actor", actors, kinds, after, limit)
        )

    async def by_subject(
        self, subjects: Collection[int], kinds: Sequence[str], after: int, limit: int
    ) -> list[EventRow]:
        """Return the first `limit` events above `after` of these subjects and kinds. One query per 900 subjects."""
        return await self._transaction(
            lambda connection: pages.by_owners(connection, "subject", subjects, kinds, after, limit)
        )

    async def notifications(self, users: Sequence[int], limit: int) -> dict[int, dict[Group, int]]:
        """Return each user's newest `limit` notification groups with the numbers of their newest events, newest first.

        Users without notifications are left out. One query per 256 users.
        """
        return await self._transaction(lambda connection: notifications.newest(connection, users, limit))

    async def notifications_about(self, posts: Collection[int]) -> list[tuple[int, Group, int]]:
        """Return the notification groups of likes and reposts of posts, as (recipient, group, number of newest event).

        One query per 2,000 posts.
        """
        return await self._transaction(lambda connection: notifications.about(connection, posts)) if posts else []

    async def notifications_read(self, users: Collection[int]) -> dict[int, int]:
        """Return the event number up to which each user has read notifications, if any. One query per 2,000 users."""
        return (
            await self._transaction(lambda connection: notifications.notifications_read(connection, users))
            if users
            else {}
        )

    async def credentials(self, users: Collection[int]) -> dict[int, Credential]:
        """Return the credentials of each user who has them. One query per 2,000 users."""

        async def work(connection: AsyncConnection) -> dict[int, Credential]:
            found: dict[int, Credential] = {}
            for chunk in chunks(sorted(set(users)), IDS_PER_QUERY):
                rows = await connection.execute(select(CREDENTIALS).where(CREDENTIALS.c.user.in_(chunk)))
                found.update((row[0], Credential(*row)) for row in rows)
            return found

        return await self._transaction(work) if users else {}

    async def user_ids(self, after: int, limit: int) -> list[int]:
        """Return the first `limit` ids above `after` of users with credentials. One query; two on PostgreSQL."""

        async def work(connection: AsyncConnection) -> list[int]:
            rows = await pages.first_rows(connection, select(CREDENTIALS.c.user), after, MAX_NUMBER, limit)
            return [user for (user,) in rows]

        return await self._transaction(work)

    async def user_count(self) -> int:
        """Return the number of users with credentials. One query, which scans an index."""
        query = select(func.count()).select_from(CREDENTIALS)

        async def work(connection: AsyncConnection) -> int:
            return int((await connection.execute(query)).scalar_one())

        return await self._transaction(work)

    async def close(self) -> None:
        """Wait for running transactions, cancel those that exceed the timeout, and close the connections."""
        await self.database.close()
