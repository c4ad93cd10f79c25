"""Reads the events of a chunk of users from the archive and folds them, in batches of bounded size.

The posts of an author are read only down to the floor of the hot window; older posts are only counted. The follows and
followers of a user are read page by page if there are many.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from graph.archive.rows import REDACTED, EventRow
from graph.chunks import chunks
from graph.expected.event_folds import PARTS, fold_event
from graph.fold.content import Content, NotificationGroups, Part
from graph.fold.hot_window import Cut, HotLimits, floor
from graph.fold.reading import ROWS, EventReader, FoldedBatch, names_of
from graph.log.account_events import UserDeleted, UserErased
from graph.log.events import (
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    ProfileChanged,
    Reposted,
    Unreposted,
    UserCreated,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.notification_groups import Group
from graph.paging import Window
from graph.post_lists import REPLIED, TIMELINE, PostList
from graph.relations.register import RELATIONS
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

AUTHORS = 200
FEW_GROUPS = 20
DELETED_USERS = 500
ACCOUNT_KINDS = names_of(
    (
        UserCreated,
        ProfileChanged,
        PasswordChanged,
        PermissionGranted,
        PermissionRevoked,
        UserSuspended,
        UserUnsuspended,
        UserDeleted,
        UserErased,
    )
)
DELETION_KINDS = names_of((PostDeleted,))
REPOST_KINDS = names_of((Reposted, Unreposted))
UNREPOST_KINDS = names_of((Unreposted,))


class ContentLoader:
    """Reads and folds the content that the store should hold for users.

    Deletions up to `tombstones_after` are left out. A query reads at most about `rows` rows. A list of notifications
    keeps `notifications_kept` groups.
    """

    def __init__(
        self,
        archive: "Archive",
        limits: HotLimits,
        tombstones_after: int,
        *,
        rows: int = ROWS,
        authors: int = AUTHORS,
        notifications_kept: int = Tuning().notifications_kept,
    ) -> None:
        self._archive = archive
        self._reader = EventReader(archive, rows)
        self._limits = limits
        self._tombstones_after = tombstones_after
        self._rows = rows
        self._notifications_kept = notifications_kept
        self._authors = authors

    async def batches(self, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the content of users in batches that together contain all keys of the users, including erased users."""
        erased: dict[int, int] = {}
        async for batch in self.accounts(users):
            erased |= batch.content.erased
            yield batch
        reads: list[Callable[[Sequence[int]], AsyncIterator[FoldedBatch]]]
        reads = [partial(relation.batches, self._reader) for relation in RELATIONS]
        for read in (*reads, self.reposted, self.posts, self.notifications):
            async for batch in read(users):
                batch.content.erased = erased
                yield batch

    async def accounts(self, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the profiles and logins of users. Users without credentials have none."""
        credentials = await self._archive.credentials(users)
        secrets = {user: credential.hash for user, credential in credentials.items()}
        batch = FoldedBatch(Content(users, secrets=secrets, parts=[Part.ACCOUNT]), fold_event)
        async for _, rows, _ in self._reader.pages(self._archive.by_actor, users, ACCOUNT_KINDS):
            batch.add(rows)
        yield batch

    async def deleted_users(self) -> AsyncIterator[FoldedBatch]:
        """Yield the data that the store keeps about deleted users.

        For deleted users with credentials, `accounts` yields the same data. The events are not counted. Two queries for
        every 500 users; three on PostgreSQL.
        """
        after = 0
        while rows := await self._archive.of_kind(UserDeleted.__name__, after, DELETED_USERS):
            users = [row.actor for row in rows]
            batch = folded(users, Part.ACCOUNT, rows, is_page=False)
            batch.add(await self._archive.by_actor(users, [UserErased.__name__], 0, self._rows))
            batch.events = 0
            yield batch
            after = rows[-1].number

    async def reposted(self, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the originals of users' plain reposts. `posts`, not this method, counts the `Reposted` events."""
        async for owners, rows, is_page in self._reader.pages(self._archive.by_actor, users, REPOST_KINDS):
            batch = folded(owners, Part.REPOSTED, rows, is_page=is_page)
            batch.events = sum(row.kind in UNREPOST_KINDS for row in rows)
            yield batch

    async def posts(self, authors: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the authors' timelines and lists of replies, with the content of hot posts, and then the deletions."""
        for some in chunks(authors, self._authors):
            for post_list in (TIMELINE, REPLIED):
                async for batch in self.lists(post_list, some):
                    yield batch
            async for batch in self._deletions(some):
                yield batch

    async def under_posts(self, post_list: PostList, posts: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the lists of one kind under posts, without tombstones: the tombstones of the listed posts are enough.

        The events are not counted, because the same events are in lists of users.
        """
        kinds = await self._archive.kinds_of(posts)
        for some in chunks(posts, self._authors):
            async for batch in self.lists(post_list, some):
                batch.deleted = {post for post in some if kinds.get(post) == REDACTED}
                batch.events = 0
                yield batch

    async def lists(self, post_list: PostList, owners: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield lists of one kind with their hot posts and cuts."""
        newest = await self._newest(post_list, owners, self._limits.newest + 1)
        active = [owner for owner, rows in newest.items() if self._is_cut_short(rows)]
        inactive = {owner: rows for owner, rows in newest.items() if owner not in {*active}}
        yield await self._hot(post_list, inactive)
        for few in chunks(active, max(1, self._rows // (self._limits.posts + 1))):
            yield await self._hot(post_list, await self._newest(post_list, few, self._limits.posts + 1))

    async def _newest(self, post_list: PostList, owners: Sequence[int], limit: int) -> dict[int, list[EventRow]]:
        reads = [(owner, Window(limit, forward=True)) for owner in owners]
        return dict(zip(owners, await self._archive.post_rows(reads, post_list), strict=True))

    async def notifications(self, users: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the users' notification groups and the numbers up to which they are read, without reading events.

        Users with many groups are read a few at a time.
        """
        few = await self._archive.notifications(users, FEW_GROUPS)
        many = [user for user, groups in few.items() if len(groups) == FEW_GROUPS]
        yield await self._notified([user for user in users if user not in many], few)
        limit = self._notifications_kept + 1
        for some in chunks(many, max(1, self._rows // limit)):
            yield await self._notified(some, await self._archive.notifications(some, limit))

    async def _notified(self, users: Sequence[int], groups: Mapping[int, Mapping[Group, int]]) -> FoldedBatch:
        """Return a batch with these notification groups of users and the numbers up to which they are read."""
        read_to_of = await self._archive.notifications_read(users)
        content = Content(users, parts=[Part.NOTIFICATIONS])
        content.notifications = {
            user: NotificationGroups(dict(groups.get(user, {})), read_to_of.get(user, 0))
            for user in users
            if user in groups or user in read_to_of
        }
        return FoldedBatch(content, fold_event)

    def _is_cut_short(self, newest: Sequence[EventRow]) -> bool:
        """Return True if the hot window may hold more posts than the first read returned."""
        is_full = len(newest) > self._limits.newest
        return is_full and self._limits.posts > self._limits.newest and newest[-1].number >= self._limits.oldest

    async def _hot(self, post_list: PostList, posts: Mapping[int, Sequence[EventRow]]) -> FoldedBatch:
        """Return a batch with the hot posts among the newest posts of lists, and the counts of all older posts."""
        floors = {owner: floor([row.number for row in rows], self._limits) for owner, rows in posts.items()}
        cut = [(owner, bottom) for owner, bottom in floors.items() if bottom]
        counts, _ = await self._archive.post_counts(cut, post_list) if cut else ([], 0)
        cold = {owner: count for (owner, _), count in zip(cut, counts, strict=True)}
        content = Content(posts, parts=[PARTS[post_list]])
        batch = FoldedBatch(
            content, fold_event, {post_list: Cut(floors, cold)}, events=sum(counts) if post_list is TIMELINE else 0
        )
        for owner, rows in posts.items():
            batch.add(row for row in rows if row.number > floors[owner])
        if not post_list.is_of_users:  # a post can be in lists of several kinds
            content.under_posts = {
                kind: held if kind is post_list else {} for kind, held in content.under_posts.items()
            }
        return batch

    async def _deletions(self, authors: Sequence[int]) -> AsyncIterator[FoldedBatch]:
        """Yield the deletions of posts and reposts whose tombstones are still kept.

        All deletions of a post are read, because the one with the lowest number decides.
        """
        pages = self._reader.pages(self._archive.by_actor, authors, DELETION_KINDS, self._tombstones_after)
        async for owners, rows, _ in pages:
            deleted = sorted({row.subject for row in rows if row.subject is not None})
            batch = FoldedBatch(Content(owners, parts=[Part.POSTS, Part.REPLIED]), fold_event)
            for posts in chunks(deleted, self._authors):
                async for _, all_deletions, _ in self._reader.pages(self._archive.by_subject, posts, DELETION_KINDS):
                    batch.add(all_deletions)
            yield batch
        async for owners, rows, _ in self._reader.pages(
            self._archive.by_actor, authors, UNREPOST_KINDS, self._tombstones_after
        ):
            batch = folded(owners, Part.POSTS, rows, is_page=False)
            batch.events = 0
            yield batch


def folded(owners: Sequence[int], part: Part, rows: Iterable[EventRow], *, is_page: bool) -> FoldedBatch:
    """Fold rows of events into one part of the owners' content, and return the batch with the result."""
    batch = FoldedBatch(Content(owners, parts=[part]), fold_event, is_page=is_page)
    batch.add(rows)
    return batch
