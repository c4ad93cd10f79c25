"""What the server has acknowledged to all users, and which requests are in progress."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from graph.log.events import PostPublished
from tests.support.world import ListOfUsers, World

Pairs = dict[tuple[int, int], int] | set[tuple[int, int]]

RECENT = 60  # users act on the newest posts, so that several users act on the same one


@dataclass
class Acknowledged:
    """The acknowledged changes of all users, as a `World`.

    The result of two changes at the same moment depends on their order in the log, which clients do not know. So
    requests about the same two users never overlap, and nobody acts on a post while its author deletes it.

    `authors` and `texts` have all posts that ever existed. `ended` are the posts that were deleted and the reposts that
    were undone, `deleted` those whose deletion or undoing was itself acknowledged. `cut` are follows that a block has
    ended, or that did not count because of one. `seen` is the cursor up to which each user has read notifications.
    `day` is when the load began.
    """

    world: World = field(default_factory=World)
    bookmarks: set[tuple[int, int]] = field(default_factory=set)
    authors: dict[int, int] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    cut: set[tuple[int, int]] = field(default_factory=set)
    seen: dict[int, str] = field(default_factory=dict)
    day: date = field(default_factory=lambda: datetime.now(UTC).date())
    separated: set[frozenset[int]] = field(default_factory=set)
    """The pairs of users between whom there has been a block."""
    unshown: list[str] = field(default_factory=list)
    """The answers to mutations that did not show their own change."""
    outdated: list[str] = field(default_factory=list)
    """The answers that did not know an earlier acknowledged change, such as a block. A failover can cause them."""
    _recent: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    _pairs: set[frozenset[int]] = field(default_factory=set)
    _used: Counter[int] = field(default_factory=Counter)
    _ending: set[int] = field(default_factory=set)

    @property
    def ended(self) -> set[int]:
        """The posts and reposts that existed but no longer do."""
        return self.authors.keys() - self.world.posts.keys()

    @contextmanager
    def using(self, user: int, others: set[int], post: int | None = None) -> Iterator[None]:
        """Keep requests about the user and each of the others from overlapping, and the post from being deleted."""
        pairs = {frozenset((user, other)) for other in others if other != user}
        self._pairs |= pairs
        self._used[post or 0] += 1
        try:
            yield
        finally:
            self._pairs -= pairs
            self._used[post or 0] -= 1

    def is_free(self, user: int, other: int) -> bool:
        """Return True if no request about two users is in progress."""
        return frozenset((user, other)) not in self._pairs

    def posts_for(self, user: int) -> list[int]:
        """Return the newest posts on which a user can act now. They are not reposts."""
        posts = [post for post in self._recent if post in self.world.posts and post not in self._ending]
        return [post for post in posts if self.is_free(user, self.authors[post])]

    def deletable(self, user: int) -> list[int]:
        """Return the user's posts on which nobody is acting at the moment."""
        posts = self.world.posts.items()
        return [post for post, body in posts if body.author == user and body.text and not self._used[post]]

    def are_apart(self, user: int, other: int) -> bool:
        """Return True if one of two users blocks the other."""
        return not self.world.blocks.isdisjoint({(user, other), (other, user)})

    def publish(self, post: int, body: PostPublished) -> None:
        """Record that a post was published, or a repost was made."""
        self.world.posts[post] = body
        self.authors[post], self.texts[post] = body.author, body.text
        if body.text:
            self._recent.append(post)

    def repost(self, user: int, original: int, repost: int) -> None:
        """Record that a user reposted a post without a text."""
        author = self.authors[original]
        self.publish(repost, PostPublished(user, "", repost_of=original, repost_of_author=author))
        self.world.reposted[user, original] = repost

    def unrepost(self, user: int, original: int) -> None:
        """Record that a user undid a repost."""
        repost = self.world.reposted.pop((user, original))
        self.deleted.add(repost)
        del self.world.posts[repost]

    @contextmanager
    def deleting(self, post: int) -> Iterator[None]:
        """Keep users from acting on a post, which is deleted during the block together with its plain reposts."""
        self._ending.add(post)
        yield  # if the deletion is not acknowledged in time, the load ends
        world = self.world
        del world.posts[post]
        for user, original in [pair for pair in world.reposted if pair[1] == post]:
            del world.posts[world.reposted.pop((user, original))]
        for like in [like for like in world.likes if like[1] == post]:
            del world.likes[like]
        self.bookmarks -= {pair for pair in self.bookmarks if pair[1] == post}

    def set_pair(self, pair: tuple[int, int], pairs: Pairs, *, exists: bool) -> None:
        """Record that a like, bookmark, follow, mute or block was made or undone. A block ends the follows."""
        if not exists:
            pairs.pop(pair) if isinstance(pairs, dict) else pairs.discard(pair)
            return
        pairs.update({pair: 1}) if isinstance(pairs, dict) else pairs.add(pair)  # likes are compared without numbers
        if pairs is self.world.follows:
            self.cut.discard(pair)
        if pairs is self.world.blocks:
            self.separated.add(frozenset(pair))
            ended = self.world.follows & {pair, pair[::-1]}
            self.world.follows -= ended
            self.cut |= ended

    def lists_of(self, user: int) -> dict[int, ListOfUsers]:
        """Return the lists of a user."""
        return {number: each for number, each in self.world.lists.items() if each.owner == user}
