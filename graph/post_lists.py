"""The lists of posts, in the store and the archive: timelines, authors' replies, and replies, reposts and quotes.

All of these lists are ordered by the numbers of the posts, newest first, and a post is added and removed only once. One
rule therefore decides for all lists which posts are *hot*, that is, kept in the store. The archive holds the complete
lists.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from graph import keys


@dataclass(frozen=True, slots=True)
class PostList:
    """A kind of list.

    key: the key of an owner's list, a versioned set of hot posts with an archive floor. cold: the key of the counter of
    the list's live posts that are in the archive only. column: the archive column that holds the owner in the rows of
    live posts. kind: the kind of these rows, if rows of other kinds use the column too. count: the field of
    `post:{owner}` that holds the length of the list. None for lists that belong to users.
    """

    name: str
    key: Callable[[int], str]
    cold: Callable[[int], str]
    column: str
    count: str | None = None
    kind: str | None = None

    @property
    def is_of_users(self) -> bool:
        """Whether the owners are users, not posts."""
        return self.count is None


TIMELINE = PostList("timeline", keys.posts, keys.cold, "listed_by")
"""The listed posts of an author."""
REPLIED = PostList("replied", keys.replied, lambda user: keys.archived_of(keys.replied(user)), "replied_by")
"""The replies of an author, including listed ones."""
REPLIES = PostList("replies", keys.replies, lambda post: keys.archived_of(keys.replies(post)), "reply_to", "replies")
"""The direct replies to a post."""
REPOSTS = PostList(
    "reposts", keys.reposts, lambda post: keys.archived_of(keys.reposts(post)), "subject", "reposts", "Reposted"
)
"""The plain reposts of a post."""
QUOTES = PostList(
    "quotes", keys.quotes, lambda post: keys.archived_of(keys.quotes(post)), "repost_of", "quotes", "PostPublished"
)
"""The quotes of a post. Earlier versions put plain reposts into the same column (`graph.archive.reposts`)."""
POST_LISTS = (TIMELINE, REPLIED, REPLIES, REPOSTS, QUOTES)
LISTS_UNDER_POSTS = (REPLIES, REPOSTS, QUOTES)
LIST_COLUMNS = (TIMELINE.column, REPLIED.column, REPLIES.column, QUOTES.column)
"""The columns of the archive that are for lists only. They are null in the rows of deleted posts and other events."""


class Listable(Protocol):
    """An object that determines the lists of a post: the post itself, or the event that published or deleted it."""

    @property
    def author(self) -> int: ...  # noqa: D102
    @property
    def reply_to(self) -> int | None: ...  # noqa: D102
    @property
    def repost_of(self) -> int | None: ...  # noqa: D102
    @property
    def is_plain_repost(self) -> bool: ...  # noqa: D102
    @property
    def listed(self) -> bool: ...  # noqa: D102


def lists_of(post: Listable) -> Iterator[tuple[PostList, int]]:
    """Yield a post's lists with their owners. The first list decides whether the store keeps the post's record."""
    if post.listed:
        yield TIMELINE, post.author
    if post.reply_to is not None:
        yield REPLIED, post.author
        yield REPLIES, post.reply_to
    if post.repost_of is not None:
        yield REPOSTS if post.is_plain_repost else QUOTES, post.repost_of
