"""The enums of the API: those of the graph, with descriptions.

Import them from here wherever a field is annotated with one: Strawberry takes a bare enum as it finds it.
"""

from collections.abc import Mapping
from enum import Enum

import strawberry

from graph.errors import ProblemCode
from graph.feed.filters import EventKind
from graph.feed.updates import GapReason
from graph.model import FollowOutcome, RelationshipState, TimelineKind

__all__ = ["EventKind", "FollowOutcome", "GapReason", "ProblemCode", "RelationshipState", "TimelineKind"]


def describe(enum: type[Enum], description: str, values: Mapping[Enum, str], name: str | None = None) -> None:
    """Make an enum of the graph one of the API: each value's name, with a description."""
    strawberry.enum(enum, name=name, description=description)
    definition = enum.__strawberry_definition__  # type: ignore[attr-defined]  # set by strawberry.enum
    for value in definition.values:
        value.description = values[enum[value.name]]


describe(
    RelationshipState,
    "How the viewer and another person stand to each other, in one word.",
    {
        RelationshipState.SELF: "It is the viewer's own profile.",
        RelationshipState.NONE: "Neither follows the other.",
        RelationshipState.FOLLOWING: "The viewer follows the person, who does not follow back.",
        RelationshipState.FOLLOWED_BY: "The person follows the viewer, who does not follow back.",
        RelationshipState.MUTUAL: "Both follow each other.",
    },
)
describe(
    TimelineKind,
    "Whose posts a timeline shows.",
    {
        TimelineKind.HOME: "The owner's posts and those of everyone whom the owner follows now.",
        TimelineKind.USER: "The owner's posts alone.",
    },
)
describe(
    FollowOutcome,
    "What following or unfollowing did for one id.",
    {
        FollowOutcome.FOLLOWED: "The viewer follows the person from now on.",
        FollowOutcome.ALREADY_FOLLOWING: "The viewer followed the person before; nothing changed.",
        FollowOutcome.UNFOLLOWED: "The viewer follows the person no longer.",
        FollowOutcome.NOT_FOLLOWING: "The viewer did not follow the person; nothing changed.",
        FollowOutcome.NOT_FOUND: "The id stands for nobody.",
        FollowOutcome.SELF: "The id is the viewer's own; nobody follows themselves.",
        FollowOutcome.LIMIT_REACHED: "The viewer would follow too many people, so nobody of this request was followed.",
    },
)
describe(
    ProblemCode,
    "Why a mutation was refused. Codes are stable; messages are for people and may change.",
    {
        ProblemCode.INVALID: "The field's value breaks a rule, which the message names.",
        ProblemCode.LOGIN_TAKEN: "Somebody else has this login.",
        ProblemCode.LOGIN_INVALID: "A login has 2 to 30 characters out of `a-z`, `0-9` and `_`.",
        ProblemCode.PASSWORD_TOO_WEAK: "The password is too short or too easy to guess; the message says why.",
        ProblemCode.WRONG_CREDENTIALS: "There is no such login, or the password is wrong.",
        ProblemCode.TEXT_EMPTY: "The text is empty, or only white space.",
        ProblemCode.TEXT_TOO_LONG: "The text has more than 1000 characters.",
        ProblemCode.NOT_FOUND: "The id stands for nothing that the viewer can see.",
        ProblemCode.NOT_ALLOWED: "It is there, but not the viewer's to change.",
        ProblemCode.TOO_MANY: "More ids than a request may have, or more follows than a person may have.",
        ProblemCode.TOO_MANY_ATTEMPTS: "Too many log-ins from this network have failed; wait before the next.",
        ProblemCode.IDEMPOTENCY_MISMATCH: "The idempotency key was used before, with another input.",
    },
    name="UserErrorCode",
)
describe(
    GapReason,
    "Why events are missing from a subscription.",
    {
        GapReason.RETENTION: "The log no longer holds all that came after the cursor, or never reached it (after a "
        "failover). What is missing is lost; what is left follows.",
        GapReason.SLOW_CONSUMER: "The client read too slowly, and its buffer was full. The stream goes on from now; a "
        "new subscription with the gap's `cursor` tells what was missed.",
    },
)
describe(
    EventKind,
    "What an event stream can tell of.",
    {
        EventKind.POST_PUBLISHED: "Somebody published a post.",
        EventKind.POST_DELETED: "Somebody deleted a post of theirs.",
        EventKind.USER_FOLLOWED: "Somebody followed somebody.",
        EventKind.USER_UNFOLLOWED: "Somebody stopped following somebody.",
    },
)
