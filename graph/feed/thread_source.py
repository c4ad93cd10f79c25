"""Streams of threads: the direct replies to a post, its counts, and its deletion."""

from collections.abc import Collection, Hashable, Sequence
from contextlib import aclosing

from graph.feed.combined_stream import StreamReads
from graph.feed.live_views import LiveView, LiveViews
from graph.feed.reader import LogReader
from graph.feed.topic_source import LIKES, POST, TopicIndex, Topics, TopicSource, post_or_author_update, topics_of
from graph.feed.updates import (
    AuthorAdded,
    AuthorHidden,
    CountsChanged,
    PostAdded,
    PostChanged,
    PostRemoved,
    ReplyAdded,
    ThreadCause,
    ThreadChange,
    item_update,
)
from graph.log.events import Event
from graph.log.log import Log
from graph.post_lists import QUOTES, REPLIES, REPOSTS
from graph.posts.posts import Posts
from graph.projections.mode import Mode
from graph.projections.projections import Projections


class ThreadSource(TopicSource[ThreadCause]):
    """The events that concern the direct replies to a post, and those that change its counts.

    `author` is the author of the post, or None if the post is deleted.
    """

    def __init__(
        self,
        view: LiveView,
        views: LiveViews,
        post: int,
        author: int | None,
        projections: Projections,
        index: TopicIndex,
    ) -> None:
        super().__init__(view, views, projections, index)
        self._post = post
        self._author = author
        self._topics = dict.fromkeys((REPLIES.name, REPOSTS.name, QUOTES.name, LIKES, POST), (post,))

    @property
    def authors(self) -> Collection[int]:
        """No authors: `ThreadReads` projects all events of the stream before it sends their updates."""
        return ()

    @property
    def topics(self) -> Topics:
        """The lists and the likes of the post, and the post itself."""
        return self._topics

    async def visible(self, updates: Sequence[ThreadCause]) -> Sequence[ThreadCause]:
        """Return the updates, with `CountsChanged` in place of each that shows a user who is hidden from the viewer.

        If the author of the post is hidden from the viewer, changes of the counts are left out.
        """
        author = {self._author} if self._author is not None else set[int]()
        shown = {update.number for update in await self._view.visible_in_timeline(updates)}
        found = [update if update.number in shown else CountsChanged(update.number) for update in updates]
        if not await self._view.hidden(author):
            return found
        return [update for update in found if not isinstance(update, CountsChanged)]

    def group(self, event: Event) -> int | None:
        """Return the post's id if the event is about posts or likes, because its update then depends on the thread."""
        return self._post if any(topics_of(event.body)) else None

    def update_of(self, event: Event) -> ThreadCause | None:
        """Return the update caused by an event that concerns the thread."""
        topics = set(topics_of(event.body))
        if not topics:
            return post_or_author_update(event, self.viewer)
        if topics.isdisjoint({(REPLIES.name, self._post), (POST, self._post)}):
            return CountsChanged(event.number)
        return item_update(event)


class WaitingThread:
    """The updates of a thread that are waiting to be sent. Updates that only change counts are combined."""

    def __init__(self) -> None:
        self.updates: list[ThreadCause] = []
        self.numbers: list[int] = []

    def add(self, update: ThreadCause) -> None:
        """Add an update."""
        self.numbers.append(update.number)
        if not isinstance(update, CountsChanged):
            self.updates.append(update)

    def __len__(self) -> int:
        """Return the maximum number of updates to send."""
        return len(self.updates) + bool(self.numbers)

    def key(self) -> Hashable:
        """Return a value that is the same for two streams if they have the same updates to send."""
        updates = tuple((type(update), update.number, getattr(update, "user", None)) for update in self.updates)
        return self.numbers[0], self.numbers[-1], len(self.numbers), updates

    def changes(self, post: int) -> list[ThreadChange]:
        """Return the updates to send about a post and its replies: `PostChanged` if counts changed, then all others.

        Replies that the updates delete are left out, and so are replies by users whom the updates hide.
        """
        removed = {update.post for update in self.updates if isinstance(update, PostRemoved)}
        hidden = {update.user for update in self.updates if isinstance(update, AuthorHidden)}
        about_users = sum(isinstance(update, AuthorAdded | AuthorHidden) for update in self.updates)
        changes: list[ThreadChange] = []
        if about_users < len(self.numbers) and post not in removed:
            changes.append(PostChanged(self.numbers[0] - 1, post))
        for update in self.updates:
            match update:
                case PostAdded(number, reply):
                    is_shown = reply.id not in removed and reply.author not in hidden
                    changes += [ReplyAdded(number, reply)] if is_shown else []
                case PostRemoved() | AuthorAdded() | AuthorHidden():
                    changes.append(update)
                case _:
                    pass
        return changes


class ThreadReads(StreamReads[ThreadCause, ThreadChange, WaitingThread]):
    """The alarms and reads of the thread streams of a process."""

    def __init__(self, log: Log, reader: LogReader, projections: Projections, posts: Posts) -> None:
        super().__init__()
        self._log = log
        self._posts = posts
        self._reader = reader
        self._projections = projections

    def waiting(self) -> WaitingThread:
        """Return an empty collection for waiting updates."""
        return WaitingThread()

    async def load(self, subject: int, waiting: WaitingThread) -> list[ThreadChange]:
        """Return the updates to send about the post `subject`, in the order of their numbers.

        No round trip if this process knows that the events are projected, otherwise one, and more if they are not: the
        process that committed an event may have died before projecting it.
        """
        last = waiting.numbers[-1]
        if last > await self._log.recent_watermark() and last > (watermark := await self._log.watermark()):
            lacking = [number for number in waiting.numbers if number > watermark]
            async with aclosing(self._reader.events(lacking)) as parts:
                async for events in parts:
                    await self._projections.project(events, Mode.CATCH_UP)
        return waiting.changes(subject)

    async def recheck(self, changes: list[ThreadChange]) -> list[ThreadChange]:
        """Return the updates without replies that are deleted now. One round trip if there are replies."""
        replies = [change.post.id for change in changes if isinstance(change, ReplyAdded)]
        deleted = await self._posts.are_deleted(replies) if replies else []
        gone = {reply for reply, is_deleted in zip(replies, deleted, strict=True) if is_deleted}
        return [change for change in changes if not isinstance(change, ReplyAdded) or change.post.id not in gone]
