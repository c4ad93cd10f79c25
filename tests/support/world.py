"""The content of the log as plain sets: what users can read after some events."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from graph.log.account_events import UserDeleted
from graph.log.events import (
    Blocked,
    Event,
    Followed,
    Liked,
    ListChanged,
    ListCreated,
    ListDeleted,
    PostDeleted,
    PostPublished,
    Reposted,
    Unblocked,
    Unfollowed,
    Unliked,
    Unreposted,
    publication_of,
)
from graph.log.moderation_events import UserSuspended, UserUnsuspended
from graph.log.pair_events import Muted, Unmuted


@dataclass(frozen=True)
class ListOfUsers:
    """A list of users: its owner, its name and its members."""

    owner: int
    name: str
    members: frozenset[int]

    def after(self, change: ListChanged) -> "ListOfUsers":
        """Return the list after a change."""
        members = (self.members | {*change.added}) - {*change.removed}
        return replace(self, name=change.name or self.name, members=members)


@dataclass
class World:
    """Follows, mutes, blocks, posts that are not deleted, and likes with their numbers, as plain sets.

    The posts include plain reposts. `reposted` has the plain repost of each user and original: a user has at most one
    of an original, and it ends with the original. `lists` has the lists of users by id.
    """

    follows: set[tuple[int, int]] = field(default_factory=set)
    mutes: set[tuple[int, int]] = field(default_factory=set)
    blocks: set[tuple[int, int]] = field(default_factory=set)
    posts: dict[int, PostPublished] = field(default_factory=dict)
    likes: dict[tuple[int, int], int] = field(default_factory=dict)
    reposted: dict[tuple[int, int], int] = field(default_factory=dict)
    lists: dict[int, ListOfUsers] = field(default_factory=dict)
    suspended: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, events: list[Event]) -> "World":
        """Return the world after these events, in the order of the log."""
        world = cls()
        follows, changes = dict[tuple[int, int], int](), dict[tuple[int, int], int]()
        for event in sorted(events, key=lambda event: event.number):
            match event.body:
                case Followed(follower, followee):
                    follows[follower, followee] = event.number
                case Unfollowed(follower, followee):
                    follows.pop((follower, followee), None)
                case Blocked(user, other) | Unblocked(user, other):
                    changes[user, other] = changes[other, user] = event.number
                    (world.blocks.add if isinstance(event.body, Blocked) else world.blocks.discard)((user, other))
                case Muted(user, other):
                    world.mutes.add((user, other))
                case Unmuted(user, other):
                    world.mutes.discard((user, other))
                case PostPublished() as published:
                    world.posts[event.number] = published
                case PostDeleted(post=post):
                    world.posts.pop(post, None)
                case Liked(user, post):
                    world.likes[user, post] = event.number
                case Unliked(user, post):
                    world.likes.pop((user, post), None)
                case Reposted(user, original) | Unreposted(user, original):
                    world.posts.pop(world.reposted.pop((user, original), 0), None)
                    repost = publication_of(event.body)
                    if repost is not None:
                        world.posts[event.number], world.reposted[user, original] = repost, event.number
                case _:
                    world.change_account(event)
        world.follows = {
            (user, other)
            for (user, other), number in follows.items()
            if number > changes.get((user, other), 0) and world.blocks.isdisjoint({(user, other), (other, user)})
        }
        for (_, original), number in world.reposted.items():
            if original not in world.posts:
                del world.posts[number]
        return world

    def change_account(self, event: Event) -> None:
        """Apply an event that concerns a list or an account."""
        match event.body:
            case ListCreated(owner, name, members):
                self.lists[event.number] = ListOfUsers(owner, name, frozenset(members))
            case ListChanged(list_id=list_id) as change if list_id in self.lists:
                self.lists[list_id] = self.lists[list_id].after(change)
            case ListDeleted(list_id=list_id):
                self.lists.pop(list_id, None)
            case UserSuspended(user):
                self.suspended.add(user)
            case UserUnsuspended(user):
                self.suspended.discard(user)
            case UserDeleted(user):
                self.deleted.add(user)
            case _:
                pass

    def home(self, viewer: int) -> list[int]:
        """Return the posts of a home timeline, newest first."""
        return self.merged(viewer, {viewer} | {other for user, other in self.follows if user == viewer})

    def hidden(self, viewer: int | None) -> set[int]:
        """Return the users who are hidden from a viewer, or from an anonymous client for None."""
        blocks = {user for pair in self.blocks if viewer in pair for user in pair} - {viewer}
        return self.suspended | self.deleted | {user for user in blocks if user is not None}

    def merged(self, viewer: int, shown: Collection[int]) -> list[int]:
        """Return the posts of some authors as a viewer sees them in a timeline, newest first."""
        silenced = self.hidden(viewer) | {other for user, other in self.mutes if user == viewer}

        def is_shown(body: PostPublished) -> bool:
            original = None if body.text or body.attachments else body.repost_of_author
            return body.listed and body.author in shown and silenced.isdisjoint({body.author, original})

        return self._newest_first(is_shown)

    def likers(self, post: int) -> list[tuple[int, int]]:
        """Return the users who like a post with the numbers of their likes, the newest like first."""
        likes = [(user, number) for (user, liked), number in self.likes.items() if liked == post]
        return sorted(likes, key=lambda like: -like[1])

    def liked(self, user: int) -> list[tuple[int, int]]:
        """Return the live posts that a user likes with the numbers of the likes, the newest like first."""
        likes = [(post, number) for (liker, post), number in self.likes.items() if liker == user and post in self.posts]
        return sorted(likes, key=lambda like: -like[1])

    def own(self, author: int) -> list[int]:
        """Return an author's listed posts, newest first."""
        return self._newest_first(lambda body: body.listed and body.author == author)

    def replied(self, author: int) -> list[int]:
        """Return an author's replies, newest first."""
        return self._newest_first(lambda body: body.author == author and body.reply_to is not None)

    def replies(self, post: int) -> list[int]:
        """Return the direct replies to a post, newest first."""
        return self._newest_first(lambda body: body.reply_to == post)

    def reposts(self, post: int) -> list[int]:
        """Return the plain reposts of a post, newest first."""
        numbers = (number for (_, original), number in self.reposted.items() if original == post)
        return sorted((number for number in numbers if number in self.posts), reverse=True)

    def quotes(self, post: int) -> list[int]:
        """Return the quotes of a post, newest first."""
        reposts = {*self.reposted.values()}
        return [number for number in self._newest_first(lambda body: body.repost_of == post) if number not in reposts]

    def _newest_first(self, matches: Callable[[PostPublished], bool]) -> list[int]:
        return sorted((post for post, body in self.posts.items() if matches(body)), reverse=True)
