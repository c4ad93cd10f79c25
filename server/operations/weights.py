"""Weights of the schema's fields: points for processing and bytes of the response, based on measurements.

A point is about one microsecond of CPU time on a small server: an object costs one point, a scalar a quarter. Fields
that read from the store cost more, as measured in the worst case: nothing is cached, timelines are merged, and values
have the maximum length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    get_named_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)
from graphql.type import introspection_types

from graph.accounts.sessions import MAX_SESSIONS
from graph.log.notification_groups import DEFAULT_ACTORS, MAX_ACTORS
from graph.people.lists import MAX_LISTS
from graph.posts.attachments import MAX_ATTACHMENTS
from graph.posts.publication import MAX_ANCESTORS
from graph.text.entities import MAX_ENTITIES, USUAL_ENTITIES
from graph.text.web_urls import MAX_URL

OBJECT = 1.0
LEAF = 0.25
ERRORS = 10  # maximum number of `userErrors`, except for mutations that take a list of ids
IDS = 100  # maximum number of ids in one mutation

EXTRA: dict[str, float] = {
    "Query.node": 60,
    "Query.post": 60,
    "PostChanged.post": 60,
    "Query.user": 60,
    "Viewer.user": 10,
    "Query.searchPosts": 450,
    "Query.publicTimeline": 450,
    "Query.searchUsers": 650,
    "Query.nodes": 8,
    "Viewer.sessions": 2,
    "Viewer.lists": 2,
    "TimelineItem.author": 4,
    "Post.entities": 2,
    "MentionEntity.user": 4,
    "FollowEdge.node": 4,
    "FollowConnection.nodes": 4,
    "FollowConnection.totalCount": 2,
    "User.followersCount": 1.5,
    "User.followingCount": 1.5,
    "User.postsCount": 3,
    "User.relationship": 3,
    "Viewer.mutedUsers": 10,
    "Viewer.blockedUsers": 10,
    "UserEdge.node": 4,
    "UserConnection.nodes": 2.5,
    "User.followers": 10,
    "UserList.members": 20,
    "UserList.membersCount": 4,
    "User.following": 10,
    "User.followersYouKnow": 40,
    "Timeline.entries": 12,
    "Post.likes": 20,
    "Post.viewerHasLiked": 1.5,
    "Post.viewerHasBookmarked": 1,
    "LikeEdge.node": 4,
    "LikeConnection.nodes": 4,
    "Viewer.likedPosts": 75,
    "Viewer.bookmarks": 75,
    "Post.replyTo": 4,
    "Post.threadRoot": 4,
    "Post.quotedPost": 4,
    "Repost.post": 4,
    "Post.ancestors": 4,
    "Post.replies": 10,
    "Post.reposts": 15,
    "Post.quotes": 10,
    "Post.viewerHasReposted": 1,
    "PostSearch.posts": 1500,
    "NotificationFeed.unreadCount": 100,
    "NotificationFeed.hasMoreUnread": 100,
    "NotificationFeed.entries": 100,
    "Query.__schema": 500,
    "Query.__type": 50,
}
"""Additional points of a field, beyond the points of its objects and values. For a list, additional points per item."""

PER_ITEM: dict[str, float] = {
    "Post.replies": 3,
    "Post.reposts": 5,
    "Post.quotes": 3,
    "Viewer.mutedUsers": 1,
    "Viewer.blockedUsers": 1,
    "UserList.members": 1,
    "User.followers": 1,
    "User.following": 1,
    "User.followersYouKnow": 1,
    "Timeline.entries": 5,
    "Post.likes": 1,
    "Viewer.likedPosts": 5,
    "Viewer.bookmarks": 5,
    "PostSearch.posts": 5,
    "Query.searchUsers": 5,
    "NotificationFeed.entries": 18,
}
"""Points per item of a page, regardless of its selections."""

ARCHIVE: dict[str, float] = {
    "Query.searchPosts": 450,
    "Query.publicTimeline": 350,
    "Query.searchUsers": 550,
    "PostSearch.posts": 1500,
}
"""The part of a field's points that pays for its usual reads of the archive. Further reads are charged afterwards."""

ARCHIVE_ROOTS = frozenset({"Query.publicTimeline", "Query.searchPosts", "Query.searchUsers"})
"""Root fields that are limited to a few per operation, because each reads the archive in its own transactions."""

HOME_PAGE = 150
"""Points for a page of the home timeline, which may be merged from thousands of timelines."""

LIST_PAGE = 100
"""Points for a page of a list's timeline, which is merged from its members' timelines on each request.

Most lists have far fewer than 500 members."""


class Merged(Enum):
    """The kind of merged timeline that a field may return: none, the home timeline, or one list timeline per object."""

    NONE = 0
    HOME = 1
    LISTS = 2


MERGED = {
    "Viewer.homeTimeline": Merged.HOME,
    "UserList.timeline": Merged.LISTS,
    "Query.node": Merged.HOME,
    "Query.nodes": Merged.LISTS,
}
"""Fields that may return merged timelines."""

BYTES: dict[str, int] = {
    "ID": 48,
    "Int": 11,
    "Float": 24,
    "Boolean": 5,
    "DateTime": 28,
    "Notification.id": 80,
    "Post.text": 4_000,
    "Post.platform": 120,
    "Attachment.url": MAX_URL,
    "Attachment.previewUrl": MAX_URL,
    "Attachment.alt": 4_000,
    "HashtagEntity.tag": 80,  # on average, like the URLs of links: 20 characters of the text
    "LinkEntity.url": 20,  # on average: 50 links have at most the 1,000 characters of a text
    "Timeline.liveCursor": 32,
    "PostSearch.liveCursor": 32,
    "Post.liveCursor": 32,
    "TimelineEdge.cursor": 32,
    "PostEdge.cursor": 32,
    "RepostEdge.cursor": 32,
    "FollowEdge.cursor": 32,
    "LikeEdge.cursor": 32,
    "LikedPostEdge.cursor": 32,
    "BookmarkEdge.cursor": 32,
    "UserEdge.cursor": 32,
    "PageInfo.startCursor": 32,
    "PageInfo.endCursor": 32,
    "NotificationFeed.liveCursor": 32,
    "NotificationEdge.cursor": 32,
    "NotificationEvent.cursor": 32,
    "TimelineEvent.cursor": 32,
    "StreamEvent.cursor": 32,
    "ThreadEvent.cursor": 32,
    "Credentials.token": 500,
    "Session.userAgent": 200,
    "User.avatarUrl": 500,
    "User.bio": 1_200,
    "User.login": 30,
    "User.name": 200,
    "User.websiteUrl": 500,
    "UserList.name": 200,
    "UserError.field": 100,
    "UserError.message": 500,
    "UserErrorParam.name": 10,
    "UserErrorParam.value": 20,
}
"""The maximum length of values in bytes, without quotes, by field or by scalar type. Every String field needs one."""

LISTS: dict[str, int] = {
    "Post.attachments": MAX_ATTACHMENTS,
    "Post.entities": MAX_ENTITIES,
    "FollowUsersPayload.results": IDS,
    "FollowUsersPayload.userErrors": IDS,
    "UnfollowUsersPayload.results": IDS,
    "UnfollowUsersPayload.userErrors": IDS,
    "CreateListPayload.userErrors": IDS + 3,  # also the name, the key, and the number of lists
    "UpdateListPayload.userErrors": 2 * IDS + 1,
    "PublishPostPayload.userErrors": 5 * MAX_ATTACHMENTS + 7,
    "Viewer.sessions": MAX_SESSIONS,
    "Viewer.lists": MAX_LISTS,
    "Post.ancestors": MAX_ANCESTORS,
    "Notification.actors": MAX_ACTORS,
    "UserError.field": 1,
    "UserError.params": 3,
}
"""The maximum length of lists whose length is not an argument."""

DEFAULTS: dict[str, int] = {"Notification.actors": DEFAULT_ACTORS, "Post.ancestors": LISTS["Post.ancestors"]}
"""The length of lists whose length is an argument, used if the argument is a variable that the client omits."""

USUAL: dict[str, float] = {
    "Post.entities": USUAL_ENTITIES,
    "CreateListPayload.userErrors": ERRORS,
    "UpdateListPayload.userErrors": ERRORS,
    "PublishPostPayload.userErrors": ERRORS,
}
"""The usual length of lists that are nearly always much shorter than their maximum. It determines their points."""

HASHES = frozenset({"Mutation.signUp", "Mutation.logIn", "Mutation.changePassword", "Mutation.deleteAccount"})
"""Fields that hash a password."""
LOG_INS = ("logIn", "changePassword", "deleteAccount")
"""Mutations that check a password, which count as log-ins."""


RAISED = ("points", "size", "per_item", "many", "least")
"""The attributes that `Weight.at_least` raises for a field of an interface."""


@dataclass(frozen=True, slots=True)
class Weight:
    """The weight of one field: `points`, and `per_item` for each item of the page that its arguments request.

    `size` is the maximum number of bytes of a value without its key. `many` is the maximum length of a list whose
    length is not an argument; `usual`, if not None, replaces it in the computation of points. `least` is the length of
    a list whose length is an argument, if the client omits the argument's variable. A list with `of_page` is as long as
    its parent's page. `type` is the name of the type of the field's objects, or None for a leaf. `merged` is the kind
    of merged timeline that the field may return.
    """

    points: float
    size: int
    type: str | None
    per_item: float = 0.0
    many: float = 1
    of_page: bool = False
    merged: Merged = Merged.NONE
    least: float = 1
    usual: float | None = None

    def at_least(self, others: Sequence["Weight"]) -> "Weight":
        """Return this weight, with each attribute in RAISED increased to the maximum of all these weights."""
        highest = {name: max(getattr(each, name) for each in (self, *others)) for name in RAISED}
        return replace(self, **highest)


class Weights:
    """The weights of the fields of a schema. Raises ValueError for a String field without a maximum length.

    A field of an interface weighs at least as much as the same field of each object type that implements it.
    """

    def __init__(self, schema: GraphQLSchema) -> None:
        self.roots = {operation: root.name for operation, root in self._roots(schema)}
        self._schema_types = len(schema.type_map)
        self._possible = dict(possible_types(schema))
        self._fields = {
            (type_.name, name): self._weight(type_, name, field)
            for type_ in schema.type_map.values()
            if isinstance(type_, GraphQLObjectType | GraphQLInterfaceType)
            for name, field in type_.fields.items()
        }
        self._fields |= {
            (type_, name): weight.at_least([self._fields[each, name] for each in self._possible[type_]])
            for (type_, name), weight in self._fields.items()
        }
        self._meta = {
            "__typename": Weight(LEAF, max(map(len, schema.type_map)), None),
            "__schema": Weight(EXTRA["Query.__schema"], 0, "__Schema"),
            "__type": Weight(EXTRA["Query.__type"], 0, "__Type"),
        }

    def of(self, type_: str, field: str) -> Weight:
        """Return the weight of a field of a validated document."""
        return self._meta[field] if field in self._meta else self._fields[type_, field]

    def possible_types(self, type_: str) -> frozenset[str]:
        """Return the object types that values of a type may have: all of an interface or union, or the type itself."""
        return self._possible[type_]

    @staticmethod
    def _roots(schema: GraphQLSchema) -> list[tuple[str, GraphQLObjectType]]:
        roots = (
            ("query", schema.query_type),
            ("mutation", schema.mutation_type),
            ("subscription", schema.subscription_type),
        )
        return [(operation, root) for operation, root in roots if root is not None]

    def _weight(self, parent: GraphQLObjectType | GraphQLInterfaceType, name: str, field: GraphQLField) -> Weight:
        path, type_ = _path(parent, name), get_named_type(field.type)
        extra = EXTRA.get(path, 0.0)
        listed = _is_list(field)
        if parent.name in introspection_types:
            entries = self._introspected(name) if listed or name == "ofType" else 1
            leaf = is_leaf_type(type_)
            return Weight(LEAF, 40, None, many=entries) if leaf else Weight(5, 2, type_.name, many=entries)
        of_page = listed and path not in LISTS and name in ("edges", "nodes") and parent.name.endswith("Connection")
        many: float = LISTS.get(path, ERRORS if name == "userErrors" else IDS) if listed and not of_page else 1
        if is_leaf_type(type_):
            return Weight(LEAF + extra, _bytes(path, type_.name), None, many=many)
        per_item, least = PER_ITEM.get(path, 0.0), DEFAULTS.get(path, 1)
        merged = MERGED.get(path, Merged.NONE)
        return Weight(OBJECT + extra, 3, type_.name, per_item, many, of_page, merged, least, USUAL.get(path))

    def _introspected(self, name: str) -> float:
        """Return the approximate length of an introspection list; for `ofType`, the share of types that have one."""
        known = {
            "types": self._schema_types,
            "fields": 3,
            "directives": 6,
            "ofType": 0.3,
            "args": 0.5,
            "inputFields": 1,
        }
        return known.get(name, 0.5)


def possible_types(schema: GraphQLSchema) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each object type, interface and union with the names of the object types that its values can have."""
    for type_ in schema.type_map.values():
        if is_abstract_type(type_):
            yield type_.name, frozenset(each.name for each in schema.get_possible_types(type_))
        elif isinstance(type_, GraphQLObjectType):
            yield type_.name, frozenset([type_.name])


def _path(parent: GraphQLObjectType | GraphQLInterfaceType, name: str) -> str:
    """Return the name under which a field is declared above, as a field of its own type or else of an interface."""
    paths = [f"{type_.name}.{name}" for type_ in (parent, *parent.interfaces)]
    declared = (
        path for path in paths if any(path in each for each in (EXTRA, PER_ITEM, LISTS, DEFAULTS, USUAL, BYTES))
    )
    return next(declared, paths[0])


def _is_list(field: GraphQLField) -> bool:
    type_ = field.type.of_type if is_non_null_type(field.type) else field.type
    return is_list_type(type_)


def _bytes(path: str, type_: str) -> int:
    """Return the maximum size of a leaf in bytes, including quotes.

    BYTES declares it for the field or for its scalar type. Raises ValueError for a String field that is not declared.
    """
    if path in BYTES:
        return BYTES[path] + 2
    if type_ == "String":
        raise ValueError(f"server/operations/weights.py must declare the maximum length of {path}.")
    return BYTES.get(type_, 40) + 2
