"""Where a stream's updates come from: the past while it joins, then its place in an index."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import ClassVar, Generic

from graph.feed.stream import E, Stream
from graph.log.events import Event


class Source(ABC, Generic[E]):
    """Turns events of the log into the updates of one subscriber. Some sources `learn` what earlier events changed."""

    learns: ClassVar[bool] = False
    reads_posts: bool = False
    """Whether the subscriber chose by the content of posts: by words, or by place."""

    async def look_up(self) -> None:
        """Read what the meaning of events depends on, as far as it is projected."""
        return

    def learn(self, events: Sequence[Event]) -> None:
        """Add what is perhaps not projected yet: events before the place where the stream joins."""
        return

    def join(self, head: int) -> None:
        """Hear that all events up to the reader's head were looked up or learnt."""
        return

    async def announce(self, update: E, unprojected: Callable[[], AsyncGenerator[Sequence[Event]]]) -> None:
        """Prepare the store for what the subscriber will ask when it has heard of this event.

        `undrained` gives events that are perhaps not projected yet, up to the reader's head.
        """
        return

    @abstractmethod
    def pick(self, events: Sequence[Event]) -> list[Event]:
        """Return the events of the past that may concern the subscriber, whatever the content of posts."""

    @abstractmethod
    def tell(self, events: Sequence[Event]) -> list[E]:
        """Return what picked events meant, without those of posts that were deleted since."""

    @abstractmethod
    def register(self, stream: Stream[E]) -> None:
        """Let the stream hear of everything after the reader's head."""

    @abstractmethod
    def unregister(self, stream: Stream[E]) -> None:
        """Let the stream hear of nothing any more."""
