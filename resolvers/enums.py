"""The enums of the API: enums of the graph with descriptions.

Import them from this module to annotate a field: this module registers them with Strawberry.
"""

from collections.abc import Mapping
from enum import Enum

import strawberry

from graph.errors import ProblemCode
from graph.feed.filters import EventKind
from graph.feed.updates import GapReason
from graph.log.notification_groups import NotificationKind
from graph.model import FollowOutcome, RelationshipState, ReportReason, TimelineKind
from graph.posts.attachments import AttachmentKind

__all__ = [
    "AttachmentKind",
    "EventKind",
    "FollowOutcome",
    "GapReason",
    "NotificationKind",
    "ProblemCode",
    "RelationshipState",
    "ReportReason",
    "TimelineKind",
]


def describe(enum: type[Enum], description: str, values: Mapping[Enum, str], name: str | None = None) -> None:
    """Register an enum of the graph with Strawberry, with a description of each value."""
    strawberry.enum(enum, name=name, description=description)
    definition = enum.__strawberry_definition__  # type: ignore[attr-defined]  # set by strawberry.enum
    for value in definition.values:
        value.description = values[enum[value.name]]


describe(
    RelationshipState,
    "The state of the relationship between the viewer and another user.",
    {
        RelationshipState.YOU: "The user is the viewer.",
        RelationshipState.STRANGER: "Neither user follows the other.",
        RelationshipState.FOLLOWING: "The viewer follows the user, who does not follow back.",
        RelationshipState.FOLLOWED_BY: "The user follows the viewer, who does not follow back.",
        RelationshipState.MUTUAL: "The viewer and the user follow each other.",
    },
)
describe(
    TimelineKind,
    "Whose posts a timeline contains.",
    {
        TimelineKind.HOME: "The posts and reposts of the owner and of the users whom the owner currently follows.",
        TimelineKind.USER: "The owner's own posts and reposts, without replies to others.",
        TimelineKind.REPLIES: "The owner's replies.",
        TimelineKind.LIST: "The posts and reposts of the members of a list.",
        TimelineKind.PUBLIC: "The newest posts of all users, without reposts or replies to others.",
    },
)
describe(
    ReportReason,
    "Why a user or a post is reported.",
    {
        ReportReason.SPAM: "Unwanted advertising, or many meaningless posts.",
        ReportReason.ABUSE: "Harassment, hate or threats.",
        ReportReason.ILLEGAL: "Illegal content.",
        ReportReason.OTHER: "Another reason, which the comment explains.",
    },
)
describe(
    AttachmentKind,
    "The kind of an attachment.",
    {AttachmentKind.IMAGE: "A picture.", AttachmentKind.VIDEO: "A video."},
)
describe(
    FollowOutcome,
    "What following or unfollowing one user changed.",
    {
        FollowOutcome.FOLLOWED: "The viewer now follows the user.",
        FollowOutcome.ALREADY_FOLLOWING: "The viewer already followed the user. Nothing changed.",
        FollowOutcome.UNFOLLOWED: "The viewer no longer follows the user.",
        FollowOutcome.NOT_FOLLOWING: "The viewer did not follow the user. Nothing changed.",
    },
)
describe(
    ProblemCode,
    "The code of a `UserError`. Codes are stable.",
    {
        ProblemCode.INVALID: "The value is invalid. The message states the rule.",
        ProblemCode.LOGIN_TAKEN: "The login belongs to another user.",
        ProblemCode.LOGIN_INVALID: "The login does not consist of 2 to 30 characters from `a-z`, `0-9` and `_`.",
        ProblemCode.PASSWORD_TOO_WEAK: "The password is too short or too easy to guess. The message gives the reason.",
        ProblemCode.WRONG_CREDENTIALS: "The login does not exist or the password is wrong.",
        ProblemCode.TEXT_EMPTY: "The text is empty or only white space.",
        ProblemCode.TEXT_TOO_LONG: "The text has more than 1,000 characters.",
        ProblemCode.NOT_FOUND: "The object does not exist, was deleted or is hidden from the viewer.",
        ProblemCode.NOT_ALLOWED: "The object belongs to another user, or the account is suspended.",
        ProblemCode.TOO_MANY: "The input has too many ids, too many attachments, or a text with too many mentions, "
        "hashtags and links; or the viewer would have too many lists, too many members in a list, too many muted or "
        "blocked users, too many followed users, or too many reposts or bookmarks.",
        ProblemCode.TOO_MANY_ATTEMPTS: "Too many log-ins from this network have failed. Wait before the next attempt.",
        ProblemCode.IDEMPOTENCY_MISMATCH: "The idempotency key was already used with a different input.",
        ProblemCode.BLOCKED: "The viewer has blocked the user, or the user has blocked the viewer.",
    },
    name="UserErrorCode",
)
describe(
    GapReason,
    "Why a subscription cannot report everything that has changed.",
    {
        GapReason.RETENTION: "The server no longer has all events after the cursor, or a failover lost the event that "
        "the cursor points to. The missing events are lost; the remaining ones follow.",
        GapReason.SLOW_CONSUMER: "The client read too slowly and its buffer overflowed. The stream continues with new "
        "events. To receive the missing events, subscribe again with the `cursor` of the gap as `after`.",
        GapReason.REPAIR: "The server corrected data after a fault, so pages have changed without events.",
    },
)
describe(
    EventKind,
    "A kind of event in the `events` subscription.",
    {
        EventKind.POST_ADDED: "A user published a post.",
        EventKind.POST_REMOVED: "A post was deleted.",
        EventKind.REPOST_ADDED: "A user reposted a post.",
        EventKind.REPOST_REMOVED: "A repost was undone, or its post was deleted.",
        EventKind.USER_FOLLOWED: "A user followed another user.",
        EventKind.USER_UNFOLLOWED: "A user unfollowed another user.",
    },
)
describe(
    NotificationKind,
    "What a notification is about.",
    {
        NotificationKind.FOLLOW: "Users followed the viewer on one day.",
        NotificationKind.REPLY: "A user replied to one of the viewer's posts.",
        NotificationKind.MENTION: "A user mentioned the viewer in a post.",
        NotificationKind.QUOTE: "A user quoted one of the viewer's posts.",
        NotificationKind.REPOST: "Users reposted one of the viewer's posts.",
        NotificationKind.LIKE: "Users liked one of the viewer's posts.",
    },
)
