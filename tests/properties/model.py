"""The plain model: what the log means, and what a reader may and must see while operations overlap."""

from dataclasses import dataclass, field
from typing import Any

from graph.errors import Rejected
from graph.log.events import Event, Followed, PostDeleted, PostPublished, Unfollowed


@dataclass
class World:
    """Who follows whom and which posts live, in plain sets."""

    follows: set[tuple[int, int]] = field(default_factory=set)
    posts: dict[int, PostPublished] = field(default_factory=dict)

    @classmethod
    def of(cls, events: list[Event]) -> "World":
        """Apply events in the order of the log."""
        world = cls()
        for event in sorted(events, key=lambda event: event.number):
            match event.body:
                case Followed(follower, followee):
                    world.follows.add((follower, followee))
                case Unfollowed(follower, followee):
                    world.follows.discard((follower, followee))
                case PostPublished() as published:
                    world.posts[event.number] = published
                case PostDeleted(post=post):
                    world.posts.pop(post, None)
        return world

    def home(self, viewer: int) -> list[int]:
        """Give the posts of a home timeline: own ones and those of everyone followed now, newest first."""
        shown = {viewer} | {followee for follower, followee in self.follows if follower == viewer}
        return sorted((post for post, body in self.posts.items() if body.author in shown), reverse=True)

    def own(self, author: int) -> list[int]:
        """Give an author's posts, newest first."""
        return sorted((post for post, body in self.posts.items() if body.author == author), reverse=True)


@dataclass(eq=False)
class Operation:
    """Something that a process was asked to do, from its start to its return, if it ever returned."""

    process: str
    kind: str
    subject: tuple[Any, ...]
    started: int
    returned: int | None = None
    died: bool = False
    result: Any = None

    @property
    def done(self) -> bool:
        """Whether it returned to its caller without a rejection."""
        return self.returned is not None and not self.died and not isinstance(self.result, Rejected)


@dataclass
class History:
    """All operations so far, in logical time. A dead operation may still take effect until the log is drained."""

    operations: list[Operation] = field(default_factory=list)
    now: int = 0

    def tick(self) -> int:
        """Advance the logical time."""
        self.now += 1
        return self.now

    def start(self, process: str, kind: str, *subject: Any) -> Operation:
        """Note that an operation began."""
        operation = Operation(process, kind, subject, self.tick())
        self.operations.append(operation)
        return operation

    def watermark(self) -> None:
        """Note that the log is drained: what died has taken effect by now, or never will."""
        now = self.tick()
        for operation in self.operations:
            if operation.died and operation.returned is None:
                operation.returned = now

    def died(self, process: str) -> None:
        """Note that a process died with everything it was doing."""
        for operation in self.operations:
            if operation.process == process and operation.returned is None:
                operation.died = True

    def of(self, kind: str, *subject: Any) -> list[Operation]:
        """Give the operations of a kind on a subject."""
        return [op for op in self.operations if op.kind == kind and op.subject == subject]

    def surely_follows(self, follower: int, followee: int, start: int, end: int) -> bool | None:
        """Tell whether a follow surely held, or surely did not, all through a stretch of time; None if unsure."""
        touching = [
            op for kind in ("follow", "unfollow") for op in self.of(kind, follower, followee) if op.started < end
        ]
        if not touching:
            return False
        last = max(touching, key=lambda op: op.started)
        others = [op for op in touching if op is not last]
        settled = last.returned is not None and last.returned < start and not last.died
        if not settled or any(op.returned is None or op.returned > last.started for op in others):
            return None
        return last.kind == "follow"

    def check_read(self, read: Operation, *, everywhere_at_once: bool) -> None:
        """Check what a reader of a home timeline saw against what was certain all the while it read."""
        [viewer], seen, start, end = read.subject, read.result, read.started, read.returned or self.now
        ids = [post.id for post in seen]
        assert ids == sorted(set(ids), reverse=True), f"not strictly descending: {ids}"
        for post in seen:
            for deletion in self.of("delete", post.id):
                assert not deletion.done or deletion.returned >= start, f"deleted post {post.id} was shown"
            if post.author != viewer:
                followed = self.surely_follows(viewer, post.author, start, end)
                assert followed is not False, f"post {post.id} of unfollowed {post.author} was shown"
        for publication in self.operations:
            if publication.kind != "publish" or not publication.done or publication.returned >= start:
                continue
            post = publication.result
            if any(deletion.started < end for deletion in self.of("delete", post.id)):
                continue
            follows = post.author == viewer or self.surely_follows(viewer, post.author, start, end)
            if follows and everywhere_at_once:
                assert post.id in ids, f"post {post.id} of {post.author} was missing for {viewer}"
