"""Reads the events of a chunk of users from the archive and folds them, in batches of bounded size.

An author with many posts is read down to the floor of the hot window only, with a count of the posts below. A user with
many follows or followers is read page by page.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from graph.archive.rows import REDACTED, EventRow
from graph.fold.content import Content, Notifications, Part
from graph.fold.fold import PARTS, fold
from graph.fold.hot_window import HotLimits, floor
from graph.fold.stored import Cut, Cuts
from graph.log.account_events import UserDeleted, UserErased
from graph.log.encoding import decode
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    ListChanged,
    ListCreated,
    ListDeleted,
    Muted,
    PasswordChanged,
    PermissionGranted,
    PermissionRevoked,
    PostDeleted,
    ProfileChanged,
    Reposted,
    Unblocked,
    Unfollowed,
    Unmuted,
    Unreposted,
    UserCreated,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.model import MAX_NUMBER
from graph.notifications.groups import Group
from graph.paging import Window
from graph.post_lists import REPLIED, TIMELINE, PostList
from graph.tuning import Tuning

if TYPE_CHECKING:
    from graph.archive.archive import Archive

T = TypeVar("T")

Read: TypeAlias = Callable[[Sequence[int], Sequence[str], int, int], Awaitable[list[EventRow]]]
"""`Archive.by_actor` or `Archive.by_subject`."""

ROWS = 10_000
AUTHORS = 200
FEW_GROUPS = 20
DELETED_USERS = 500
ACCOUNT_KINDS = tuple(
    kind.__name__
    for kind in (
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
FOLLOW_KINDS = (Followed.__name__, Unfollowed.__name__)
BLOCK_KINDS = (Blocked.__name__, Unblocked.__name__)
LIST_KINDS = (ListCreated.__name__, ListChanged.__name__, ListDeleted.__name__)
MUTE_KINDS = (Muted.__name__, Unmuted.__name__)
DELETION_KINDS = (PostDeleted.__name__,)
REPOST_KINDS = (Reposted.__name__, Unreposted.__name__)
UNREPOST_KINDS = (Unreposted.__name__,)


@dataclass(slots=True)
class Batch:
    """Folded content of some owners, and what is needed to store it. `cuts` are those of the lists in the content.

    If the batch is one of several pages of one versioned set, `is_page` is True: later pages change what earlier pages
    hold. `events` is the number of events in the batch, `damaged` are the numbers of rows that could not be decoded,
    and `deleted` the owners of lists that are deleted posts.
    """

    content: Content
    cuts: Cuts = field(default_factory=dict)
    is_page: bool = False
    events: int = 0
    damaged: list[int] = field(default_factory=list)
    deleted: Collection[int] = ()

    def add(self, rows: Iterable[EventRow]) -> None:
        """Fold rows into the content. Rows without a body are skipped: SQL refused it, or the post was deleted."""
        fold(self.content, self._decoded(rows))

    def _decoded(self, rows: Iterable[EventRow]) -> Iterator[Event]:
        for row in rows:
            self.events += 1
            try:
                yield decode(*row)
            except ValueError:
                self.damaged.append(row.number)


class Loading:
    """Reads and folds what the store holds of users. Deletions up to `tombstones_after` are left out.

    A query reads at most about `rows` rows. A list of notifications keeps `notifications_kept` groups.
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
        self._limits = limits
        self._tombstones_after = tombstones_after
        self._rows = rows
        self._notifications_kept = notifications_kept
        self._authors = authors

    async def batches(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the content of users in batches, which together hold every key of theirs. Erased users have floors."""
        erased: dict[int, int] = {}
        async for batch in self.accounts(users):
            erased |= batch.content.erased
            yield batch
        owned = (self.blocks, self.following, self.followers, self.reposted, self.posts)
        for read in (*owned, self.user_lists, self.notifications):
            async for batch in read(users):
                batch.content.erased = erased
                yield batch

    async def accounts(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the profiles and logins of users. Users without credentials have none."""
        credentials = await self._archive.credentials(users)
        secrets = {user: credential.hash for user, credential in credentials.items()}
        batch = Batch(Content(users, secrets=secrets, parts=[Part.ACCOUNT]))
        async for _, rows, _ in self._pages(self._archive.by_actor, users, ACCOUNT_KINDS):
            batch.add(rows)
        yield batch

    async def deleted_users(self) -> AsyncIterator[Batch]:
        """Yield what is kept of deleted users, who may have no credentials. Those who have some are yielded again.

        The events are not counted. Two queries for every 500 users.
        """
        after = 0
        while rows := await self._archive.of_kind(UserDeleted.__name__, after, DELETED_USERS):
            users = [row.actor for row in rows]
            batch = folded(users, Part.ACCOUNT, rows, is_page=False)
            batch.add(await self._archive.by_actor(users, [UserErased.__name__], 0, self._rows))
            batch.events = 0
            yield batch
            after = rows[-1].number

    async def blocks(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the blocks and mutes of users, and who blocks them."""
        batch = Batch(Content(users, parts=[Part.BLOCKS]))
        await add_blocks(self._archive, batch, users, self._rows)
        async for _, rows, _ in self._pages(self._archive.by_actor, users, MUTE_KINDS):
            batch.add(rows)
        yield batch

    async def user_lists(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the lists of users. The lists of one user are in one batch: only the last event decides on a member."""
        whole: Batch | None = None
        async for owners, rows, is_page in self._pages(self._archive.by_actor, users, LIST_KINDS):
            if whole is not None and (not is_page or not whole.content.owns(Part.LISTS, owners[0])):
                yield whole
                whole = None
            whole = whole or Batch(Content(owners, parts=[Part.LISTS]))
            whole.add(rows)
        if whole is not None:
            yield whole

    async def following(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the users whom users follow."""
        async for owners, rows, is_page in self._pages(self._archive.by_actor, users, FOLLOW_KINDS):
            yield await self._follows(owners, Part.FOLLOWING, rows, is_page=is_page)

    async def followers(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the followers of users. Their events are not counted: those of `following` are the same events."""
        async for owners, rows, is_page in self._pages(self._archive.by_subject, users, FOLLOW_KINDS):
            batch = await self._follows(owners, Part.FOLLOWERS, rows, is_page=is_page)
            batch.events = 0
            yield batch

    async def reposted(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the posts that users have reposted without a text. The reposts are counted with the timelines."""
        async for owners, rows, is_page in self._pages(self._archive.by_actor, users, REPOST_KINDS):
            batch = folded(owners, Part.REPOSTED, rows, is_page=is_page)
            batch.events = sum(row.kind in UNREPOST_KINDS for row in rows)
            yield batch

    async def _follows(self, owners: Sequence[int], part: Part, rows: Iterable[EventRow], *, is_page: bool) -> Batch:
        """Return a batch of follows, with the blocks of the owners, which are not counted: `blocks` counts them."""
        batch = Batch(Content(owners, parts=[part]), is_page=is_page)
        await add_blocks(self._archive, batch, owners, self._rows)
        batch.events = 0
        batch.add(rows)
        return batch

    async def posts(self, authors: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the timelines and replies of authors with the records of the hot posts, and the deletions."""
        for some in chunks(authors, self._authors):
            for post_list in (TIMELINE, REPLIED):
                async for batch in self.lists(post_list, some):
                    yield batch
            async for batch in self._deletions(some):
                yield batch

    async def under(self, post_list: PostList, posts: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the lists of one kind under posts. Tombstones are left out: those of the listed posts are enough.

        The events are not counted: those of the lists of users are the same.
        """
        kinds = await self._archive.kinds_of(posts)
        for some in chunks(posts, self._authors):
            async for batch in self.lists(post_list, some):
                batch.deleted = {post for post in some if kinds.get(post) == REDACTED}
                batch.events = 0
                yield batch

    async def lists(self, post_list: PostList, owners: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield lists of one kind with their hot posts and cuts."""
        newest = await self._newest(post_list, owners, self._limits.newest + 1)
        active = [owner for owner, rows in newest.items() if self._is_cut_short(rows)]
        inactive = {owner: rows for owner, rows in newest.items() if owner not in {*active}}
        yield await self._hot(post_list, inactive)
        for few in chunks(active, max(1, self._rows // (self._limits.posts + 1))):
            yield await self._hot(post_list, await self._newest(post_list, few, self._limits.posts + 1))

    async def _newest(self, post_list: PostList, owners: Sequence[int], most: int) -> dict[int, list[EventRow]]:
        reads = [(owner, Window(most, forward=True)) for owner in owners]
        return dict(zip(owners, await self._archive.post_rows(reads, post_list), strict=True))

    async def notifications(self, users: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the groups of notifications of users, and how far the users have read them. Their events are not read.

        Users with many groups are read a few at a time.
        """
        few = await self._archive.notifications(users, FEW_GROUPS)
        many = [user for user, groups in few.items() if len(groups) == FEW_GROUPS]
        yield await self._notified([user for user in users if user not in many], few)
        most = self._notifications_kept + 1
        for some in chunks(many, max(1, self._rows // most)):
            yield await self._notified(some, await self._archive.notifications(some, most))

    async def _notified(self, users: Sequence[int], groups: Mapping[int, Mapping[Group, int]]) -> Batch:
        """Return the notifications of users, with these groups."""
        marks = await self._archive.read_marks(users)
        content = Content(users, parts=[Part.NOTIFICATIONS])
        content.notifications = {
            user: Notifications(dict(groups.get(user, {})), marks.get(user, 0))
            for user in users
            if user in groups or user in marks
        }
        return Batch(content)

    def _is_cut_short(self, newest: Sequence[EventRow]) -> bool:
        """Return True if the hot window may hold more posts than the first read returned."""
        is_full = len(newest) > self._limits.newest
        return is_full and self._limits.posts > self._limits.newest and newest[-1].number >= self._limits.oldest

    async def _hot(self, post_list: PostList, posts: Mapping[int, Sequence[EventRow]]) -> Batch:
        """Return the hot posts among the newest posts of lists, and count the others."""
        floors = {owner: floor([row.number for row in rows], self._limits) for owner, rows in posts.items()}
        cut = [(owner, bottom) for owner, bottom in floors.items() if bottom]
        counts, _ = await self._archive.post_counts(cut, post_list) if cut else ([], 0)
        cold = {owner: count for (owner, _), count in zip(cut, counts, strict=True)}
        content = Content(posts, parts=[PARTS[post_list]])
        batch = Batch(content, {post_list: Cut(floors, cold)}, events=sum(counts) if post_list is TIMELINE else 0)
        for owner, rows in posts.items():
            batch.add(row for row in rows if row.number > floors[owner])
        if not post_list.is_of_users:  # a post can be in lists of both kinds
            content.under = {kind: held if kind is post_list else {} for kind, held in content.under.items()}
        return batch

    async def _deletions(self, authors: Sequence[int]) -> AsyncIterator[Batch]:
        """Yield the deletions whose tombstones are still kept. The lowest deletion of a post decides."""
        pages = self._pages(self._archive.by_actor, authors, DELETION_KINDS, self._tombstones_after)
        async for owners, rows, _ in pages:
            deleted = sorted({row.subject for row in rows if row.subject is not None})
            batch = Batch(Content(owners, parts=[Part.POSTS, Part.REPLIED]))
            for posts in chunks(deleted, self._authors):
                async for _, all_deletions, _ in self._pages(self._archive.by_subject, posts, DELETION_KINDS):
                    batch.add(all_deletions)
            yield batch
        async for owners, rows, _ in self._pages(
            self._archive.by_actor, authors, UNREPOST_KINDS, self._tombstones_after
        ):
            batch = folded(owners, Part.POSTS, rows, is_page=False)
            batch.events = 0
            yield batch

    async def _pages(
        self, read: Read, owners: Sequence[int], kinds: Sequence[str], after: int = 0
    ) -> AsyncIterator[tuple[Sequence[int], list[EventRow], bool]]:
        """Yield owners, rows of theirs above `after`, and whether the rows are one of several pages of one owner.

        If the owners have too many rows for one query, they are split. The rows of one owner ascend across the pages.
        """
        rows = await read(owners, kinds, after, self._rows)
        if len(rows) < self._rows:
            yield owners, rows, False
            return
        if len(owners) > 1:
            middle = len(owners) // 2
            for part in (owners[:middle], owners[middle:]):
                async for page in self._pages(read, part, kinds, after):
                    yield page
            return
        async for rows in pages_of_one(read, owners[0], kinds, after, self._rows):
            yield owners, rows, True


async def pages_of_one(
    read: Read, owner: int, kinds: Sequence[str], after: int, size: int
) -> AsyncIterator[list[EventRow]]:
    """Yield the rows of one owner in pages that ascend by number.

    Each kind is read by itself, in the order of its index, because a query for several kinds sorts all their rows.
    """
    held: dict[str, list[EventRow]] = {kind: [] for kind in kinds}
    reached = dict.fromkeys(kinds, after)
    unread = set(kinds)
    while unread or any(held.values()):
        for kind in kinds:
            if kind in unread and not held[kind]:
                held[kind] = await read([owner], [kind], reached[kind], size)
                if len(held[kind]) < size:
                    unread.remove(kind)
                else:
                    reached[kind] = held[kind][-1].number
        upto = min((reached[kind] for kind in unread), default=MAX_NUMBER)
        page = sorted(row for rows in held.values() for row in rows if row.number <= upto)
        held = {kind: [row for row in rows if row.number > upto] for kind, rows in held.items()}
        if page:
            yield page


async def add_blocks(
    archive: "Archive", batch: Batch, owners: Sequence[int], rows: int = ROWS, upto: int = MAX_NUMBER
) -> None:
    """Add the blocks by owners and those of owners to a batch, up to a number. Only the blocks by owners are counted.

    Memory: that of all blocks of the owners. Two queries, and one more per `rows` rows.
    """
    for read in (archive.by_actor, archive.by_subject):
        counted, after = batch.events, 0
        while True:
            found = await read(owners, BLOCK_KINDS, after, rows)
            batch.add(row for row in found if row.number <= upto)
            if len(found) < rows:
                break
            after = found[-1].number
        if read == archive.by_subject:
            batch.events = counted


def folded(owners: Sequence[int], part: Part, rows: Iterable[EventRow], *, is_page: bool) -> Batch:
    """Return a batch with one part of the content of owners."""
    batch = Batch(Content(owners, parts=[part]), is_page=is_page)
    batch.add(rows)
    return batch


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in chunks of at most this size."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
