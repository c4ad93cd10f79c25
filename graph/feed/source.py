"""Where a stream's events come from: the past while it joins, then its place in an index."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import ClassVar, Generic

from graph.feed.stream import E, Stream
from graph.log.events import Fact


class Source(ABC, Generic[E]):
    """Tells what facts mean to one subscriber. A source that depends on other facts looks them up and `learns` them."""

    learns: ClassVar[bool] = False
    reads_posts: bool = False
    """Whether the subscriber chose by the content of posts: by words, or by place."""

    async def look_up(self) -> None:
        """Read what the meaning of facts depends on, as far as it is projected."""
        return

    def learn(self, facts: Sequence[Fact]) -> None:
        """Add what is perhaps not projected yet: facts before the place where the stream joins."""
        return

    def join(self, head: int) -> None:
        """Hear that all facts up to the reader's head were looked up or learnt."""
        return

    async def announce(self, event: E, undrained: Callable[[], AsyncGenerator[Sequence[Fact]]]) -> None:
        """Prepare the store for what the subscriber will ask when it has heard of this event.

        `undrained` gives facts that are perhaps not projected yet, up to the reader's head.
        """
        return

    @abstractmethod
    def pick(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return the facts of the past that may concern the subscriber, whatever the content of posts."""

    @abstractmethod
    def tell(self, facts: Sequence[Fact]) -> list[E]:
        """Return what picked facts meant, without those of posts that were deleted since."""

    @abstractmethod
    def register(self, stream: Stream[E]) -> None:
        """Let the stream hear of everything after the reader's head."""

    @abstractmethod
    def unregister(self, stream: Stream[E]) -> None:
        """Let the stream hear of nothing any more."""
