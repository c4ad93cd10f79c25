"""The part of the store's content that is determined by events, grouped by owner.

`graph.expected.event_folds` builds it from events in any order, one at a time, and `graph.expected.stored` yields its
keys.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import itemgetter
from typing import Generic, TypeVar

from graph.log.events import PostPublished
from graph.log.notification_groups import Group
from graph.post_lists import LISTS_UNDER_POSTS, PostList

Member = TypeVar("Member", bound=int | str)


class Part(Enum):
    """The parts of a user's content. They are derived from different events and can be folded separately."""

    ACCOUNT = "account"
    """Profile, permissions and login."""

    FOLLOWING = "following"
    FOLLOWERS = "followers"
    """The parts FOLLOWING and FOLLOWERS both include their owners' blocks, which decide whether a follow counts."""

    BLOCKS = "blocks"
    """Blocks in both directions."""

    PAIRS = "pairs"
    """The sets of pairs (`graph.relations.pair_sets`), such as mutes."""

    POSTS = "posts"
    """Listed posts and their deletions, and the likes of all posts."""

    REPLIED = "replied"
    """Replies of an author and their deletions."""

    REPOSTED = "reposted"
    """The originals of a user's plain reposts."""

    UNDER_POSTS = "under_posts"
    """The lists under posts: replies, reposts and quotes. The owners are posts."""

    LIKED = "liked"
    """The posts that a user likes."""

    NOTIFICATIONS = "notifications"
    """Groups of notifications, and the number up to which they are read."""

    LISTS = "lists"
    """A user's lists of users."""


@dataclass(slots=True)
class Account:
    """A user's profile, permissions and login.

    `fields` has the value of each profile field with the number of the event that set it. `permissions` has the number
    of the last change of each permission, negative for a revocation, and `password` the number of the last change of
    the password. `suspended` is the number of the last suspension or, negative, of the event that lifted it; 0 if there
    was none. `deleted` is the number of the account's deletion, and `erased` the number of the event that completed the
    erasure; 0 if there is none. Of a deleted account's profile and login, only the `login_hash` is stored. Only a user
    whose sign-up is valid has a `login`.
    """

    fields: dict[str, tuple[int, str]] = field(default_factory=dict)
    permissions: dict[str, int] = field(default_factory=dict)
    password: int = 0
    suspended: int = 0
    deleted: int = 0
    erased: int = 0
    login_hash: str = ""
    login: str | None = None
    nonce: str = ""
    secret: str = ""

    def set_field(self, name: str, value: str, number: int) -> None:
        """Set a field, unless an event with a higher number has set it."""
        held = self.fields.get(name)
        if held is None or number > held[0]:
            self.fields[name] = (number, value)

    def set_permission(self, permission: str, number: int) -> None:
        """Set a permission to an event's number, negative for a revocation, unless a later event has changed it."""
        held = self.permissions.get(permission, 0)
        if abs(number) > abs(held):
            self.permissions[permission] = number

    def suspend(self, number: int) -> None:
        """Set the suspension to an event's number, negative if the event lifts it, unless a later event set it."""
        if abs(number) > abs(self.suspended):
            self.suspended = number


@dataclass(slots=True)
class VersionedSet(Generic[Member]):
    """Members and tombstones, each with the number of the event that added or removed the element.

    The event with the highest number decides whether an element is a member or a tombstone.
    """

    members: dict[Member, int] = field(default_factory=dict)
    tombstones: dict[Member, int] = field(default_factory=dict)

    def add(self, element: Member, number: int) -> None:
        """Add an element, unless an event with a higher number has added or removed it."""
        if number > self.version(element):
            self.tombstones.pop(element, None)
            self.members[element] = number

    def remove(self, element: Member, number: int) -> None:
        """Replace an element with a tombstone, unless an event with a higher number has added or removed it."""
        if number > self.version(element):
            self.members.pop(element, None)
            self.tombstones[element] = number

    def version(self, element: Member) -> int:
        """Return the number of the event that last changed an element, or 0 if there is none."""
        return self.members.get(element) or self.tombstones.get(element) or 0


@dataclass(slots=True)
class ListedPosts:
    """The live posts in an author's list by id, the lowest deletion number of each deleted post, and likes.

    `likes` has the likes of all the author's posts, except deleted ones. `buried` has the deleted posts.
    """

    live: dict[int, PostPublished] = field(default_factory=dict)
    deleted: dict[int, int] = field(default_factory=dict)
    likes: dict[int, VersionedSet[int]] = field(default_factory=dict)
    buried: set[int] = field(default_factory=set)

    def publish(self, post: int, body: PostPublished) -> None:
        """Add a post, unless it is deleted."""
        if post not in self.deleted:
            self.live[post] = body

    def delete(self, post: int, number: int) -> None:
        """Replace a post with a tombstone. Of several deletions, the one with the lowest number counts."""
        self.live.pop(post, None)
        self.deleted[post] = min(number, self.deleted.get(post, number))

    def bury(self, post: int) -> None:
        """Forget the likes of a deleted post, which may be in another list of its author."""
        self.likes.pop(post, None)
        self.buried.add(post)

    def likes_of(self, post: int) -> VersionedSet[int]:
        """Return the mutable set of users who like a post. For a deleted post, changes of the set are discarded."""
        return VersionedSet() if post in self.buried else self.likes.setdefault(post, VersionedSet())


@dataclass(slots=True)
class ListUnderPost:
    """The live posts in a list under a post, and the lowest deletion number of each deleted post."""

    live: set[int] = field(default_factory=set)
    deleted: dict[int, int] = field(default_factory=dict)

    def publish(self, post: int) -> None:
        """Add a post, unless it is deleted."""
        if post not in self.deleted:
            self.live.add(post)

    def delete(self, post: int, number: int) -> None:
        """Replace a post with a tombstone. Of several deletions, the one with the lowest number counts."""
        self.live.discard(post)
        self.deleted[post] = min(number, self.deleted.get(post, number))


@dataclass(slots=True)
class UserLists:
    """A user's lists of users, with the members of each list, its name and the number of the event that set the name.

    A deleted list is a tombstone and has neither name nor members.
    """

    lists: VersionedSet[int] = field(default_factory=VersionedSet)
    names: dict[int, tuple[int, str]] = field(default_factory=dict)
    members: dict[int, VersionedSet[int]] = field(default_factory=dict)

    def change(
        self, list_id: int, number: int, name: str | None, added: Iterable[int], removed: Iterable[int] = ()
    ) -> None:
        """Set the name unless it is None, and add and remove members, unless a later event has changed them."""
        if list_id in self.lists.tombstones:
            return
        if name is not None and number > self.names.get(list_id, (0, ""))[0]:
            self.names[list_id] = number, name
        members = self.members.setdefault(list_id, VersionedSet())
        for user in added:
            members.add(user, number)
        for user in removed:
            members.remove(user, number)

    def delete(self, list_id: int, number: int) -> None:
        """Replace a list with a tombstone."""
        self.lists.remove(list_id, number)
        self.names.pop(list_id, None)
        self.members.pop(list_id, None)


@dataclass(slots=True)
class PlacedFollows:
    """The follows or followers of a user: those that count, those that a block keeps from counting, and tombstones."""

    members: dict[int, int] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    tombstones: dict[int, int] = field(default_factory=dict)


NO_BLOCKS = VersionedSet[int]()


@dataclass(slots=True)
class NotificationGroups:
    """The groups of a user's notifications, each with the number of its newest event.

    `read_up_to` is the number up to which the user has read notifications.
    """

    groups: dict[Group, int] = field(default_factory=dict)
    read_up_to: int = 0

    def add(self, group: Group, number: int) -> None:
        """Add a group, or raise its number."""
        self.groups[group] = max(number, self.groups.get(group, 0))

    def newest(self, kept: int) -> tuple[dict[Group, int], int]:
        """Return the newest `kept` groups, and the highest number of the dropped groups, or 0 if none is dropped."""
        ordered = sorted(self.groups.items(), key=itemgetter(1), reverse=True)
        return dict(ordered[:kept]), ordered[kept][1] if len(ordered) > kept else 0


class Content:
    """The state that events determine, limited to some parts and to some owners; `owners=None` means all owners.

    Events that concern other owners or parts have no effect, so a large graph can be folded in chunks of owners.
    `secrets` maps each user with valid credentials to the password hash, or to None for a user without a password; the
    sign-up of any other user is void. `ended` holds the sessions that must not exist: events end sessions, but never
    create any. `erased` maps each erased user to the number of the event that completed the erasure. Erased users have
    no other content.
    """

    def __init__(
        self,
        owners: Collection[int] | None = None,
        *,
        secrets: Mapping[int, str | None] | None = None,
        parts: Collection[Part] = tuple(Part),
    ) -> None:
        self.secrets = secrets or {}
        self.accounts: dict[int, Account] = {}
        self.following: dict[int, VersionedSet[int]] = {}
        self.followers: dict[int, VersionedSet[int]] = {}
        self.blocking: dict[int, VersionedSet[int]] = {}
        self.blockers: dict[int, VersionedSet[int]] = {}
        self.pairs: dict[str, dict[int, VersionedSet[str]]] = {}
        self.posts: dict[int, ListedPosts] = {}
        self.liked: dict[int, VersionedSet[int]] = {}
        self.replied: dict[int, ListedPosts] = {}
        self.reposted: dict[int, VersionedSet[int]] = {}
        self.under_posts: dict[PostList, dict[int, ListUnderPost]] = {post_list: {} for post_list in LISTS_UNDER_POSTS}
        self.notifications: dict[int, NotificationGroups] = {}
        self.lists: dict[int, UserLists] = {}
        self.ended: dict[int, set[str]] = {}
        self.erased: dict[int, int] = {}
        self._owners = None if owners is None else frozenset(owners)
        self._parts = frozenset(parts)

    def placed(self, owner: int, follows: VersionedSet[int]) -> PlacedFollows:
        """Divide an owner's follows or followers into those that count, those held by a block, and tombstones.

        A follow counts if there is no block between the two users and the follow is newer than the pair's last block or
        unblock. It is held if only a block keeps it from counting. Otherwise it can never count, and is a tombstone.
        """
        blocking, blockers = self.blocking.get(owner, NO_BLOCKS), self.blockers.get(owner, NO_BLOCKS)
        if blocking is blockers:  # there are no blocks
            return PlacedFollows(follows.members, {}, follows.tombstones)
        placed = PlacedFollows(tombstones=dict(follows.tombstones))
        for user, number in follows.members.items():
            if number <= max(blocking.version(user), blockers.version(user)):
                placed.tombstones[user] = number
            elif user in blocking.members or user in blockers.members:
                placed.held[user] = number
            else:
                placed.members[user] = number
        return placed

    def includes_blocks(self, user: int) -> bool:
        """Return True if the blocks of a user belong to the content."""
        return any(self.includes(part, user) for part in (Part.FOLLOWING, Part.FOLLOWERS, Part.BLOCKS))

    def includes(self, part: Part, owner: int) -> bool:
        """Return True if both the part and the owner belong to the content."""
        return part in self._parts and (self._owners is None or owner in self._owners)
