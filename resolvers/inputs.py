"""The input types of the API. The graph enforces the limits stated in the descriptions."""

import strawberry

from resolvers.enums import AttachmentKind, EventKind, ReportReason


@strawberry.input(description="Identifies a user by `id` or `login`. Exactly one of them is required.", one_of=True)
class UserBy:
    """Exactly one field is set; the other is None."""

    id: strawberry.ID | None = strawberry.field(description="The global id of the user.")
    login: str | None = strawberry.field(description="The login of the user, in upper or lower case.")


@strawberry.input(description="A geographic position.")
class LocationInput:
    """The values are not validated yet."""

    latitude: float = strawberry.field(description="The latitude in degrees, from -90 (south) to 90 (north).")
    longitude: float = strawberry.field(description="The longitude in degrees, from -180 (west) to 180 (east).")


@strawberry.input(description="The input of `signUp`.")
class SignUpInput:
    """The values are not validated yet."""

    login: str = strawberry.field(
        description="The handle: 2 to 30 characters from `a-z`, `0-9` and `_`. Upper-case letters are converted to "
        "lower case."
    )
    password: str = strawberry.field(
        description="The password, 8 to 128 characters. It must not be the login, the name or a common password."
    )
    name: str | None = strawberry.field(description="The display name, 1 to 50 characters. Defaults to the login.")
    idempotency_key: str | None = strawberry.field(
        description="A key that makes retries safe, chosen by the client: 1 to 128 printable ASCII characters that "
        "are hard to guess. For 24 hours, the same key, login, name and password start a session for the same account; "
        "another name or password fails with `IDEMPOTENCY_MISMATCH`."
    )


@strawberry.input(description="The input of `logIn`.")
class LogInInput:
    """The values are not validated yet."""

    login: str = strawberry.field(description="The login, in upper or lower case.")
    password: str = strawberry.field(description="The password.")


@strawberry.input(description="The input of `logOut`.")
class LogOutInput:
    """`everywhere` can be None, which means false."""

    everywhere: bool | None = strawberry.field(
        description="Whether to end all of the viewer's sessions instead of only the current one.",
        default=False,
    )


@strawberry.input(description="The input of `changePassword`.")
class ChangePasswordInput:
    """The values are not validated yet."""

    current_password: str = strawberry.field(description="The current password.")
    new_password: str = strawberry.field(
        description="The new password, 8 to 128 characters. It must not be the login, the name or a common password."
    )


@strawberry.input(description="The input of `deleteAccount`.")
class DeleteAccountInput:
    """The value is not validated yet."""

    password: str = strawberry.field(description="The viewer's password.")


@strawberry.input(description="The input of `endSession`.")
class EndSessionInput:
    """The id is not decoded yet."""

    session_id: strawberry.ID = strawberry.field(description="The global id of one of the viewer's sessions.")


@strawberry.input(description="The input of `updateProfile`. Omitted fields do not change; null clears a field.")
class UpdateProfileInput:
    """The values are not validated yet. UNSET means that the field is unchanged, and None that it is cleared."""

    name: str | None = strawberry.field(
        description="The display name, 1 to 50 characters. It cannot be cleared.", default=strawberry.UNSET
    )
    bio: str | None = strawberry.field(
        description="The viewer's description of themselves, up to 300 characters.", default=strawberry.UNSET
    )
    avatar_url: str | None = strawberry.field(
        description="The `https` URL of the viewer's picture, up to 500 characters, on a host that the server accepts.",
        default=strawberry.UNSET,
    )
    website_url: str | None = strawberry.field(
        description="The `https` URL of the viewer's website, up to 500 characters, on any domain.",
        default=strawberry.UNSET,
    )


@strawberry.input(description="A picture or video to attach to a post. The file is hosted on another server.")
class AttachmentInput:
    """The values are not validated yet."""

    kind: AttachmentKind = strawberry.field(description="Whether the attachment is a picture or a video.")
    url: str = strawberry.field(
        description="The `https` URL of the file, up to 500 ASCII characters, on a host that the server accepts."
    )
    preview_url: str | None = strawberry.field(
        description="The `https` URL of a smaller picture to show first, up to 500 ASCII characters, on a host that "
        "the server accepts."
    )
    width: int | None = strawberry.field(
        description="The width in pixels, from 1 to 65,535. Send both width and height, or neither."
    )
    height: int | None = strawberry.field(
        description="The height in pixels, from 1 to 65,535. Send both width and height, or neither."
    )
    alt: str | None = strawberry.field(
        description="A description for users who cannot see the attachment, up to 1,000 characters."
    )
    sensitive: bool | None = strawberry.field(
        description="Whether clients should hide the attachment until the reader asks to see it. Defaults to false."
    )


@strawberry.input(description="The input of `publishPost`.")
class PublishPostInput:
    """The values are not validated yet."""

    text: str | None = strawberry.field(
        description="The text: 1 to 1,000 characters after trimming white space and normalising to NFC. Optional "
        "if there are attachments."
    )
    platform: str | None = strawberry.field(
        description="The app or device that the post is written with, such as `Web`: 1 to 30 characters."
    )
    location: LocationInput | None = strawberry.field(description="Where the post is written.")
    attachments: list[AttachmentInput] | None = strawberry.field(
        description="The pictures and videos that the post shows, at most 4."
    )
    reply_to_id: strawberry.ID | None = strawberry.field(description="The global id of the post to reply to.")
    quoted_post_id: strawberry.ID | None = strawberry.field(
        description="The global id of the post to quote. A post can be both a reply and a quote."
    )
    idempotency_key: str | None = strawberry.field(
        description="A key that makes retries safe, chosen by the client: 1 to 128 printable ASCII characters. For 24 "
        "hours, the same key and input return the same post; a different input fails with `IDEMPOTENCY_MISMATCH`."
    )


@strawberry.input(description="The input of `deletePost`.")
class DeletePostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of one of the viewer's posts.")


@strawberry.input(description="The input of `repostPost`.")
class RepostPostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post to repost.")


@strawberry.input(description="The input of `unrepostPost`.")
class UnrepostPostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post that the viewer has reposted.")


@strawberry.input(description="The input of `followUsers`.")
class FollowUsersInput:
    """The ids are not decoded yet."""

    user_ids: list[strawberry.ID] = strawberry.field(
        description="The global ids of the users to follow, 1 to 100. Duplicate ids produce one result."
    )


@strawberry.input(description="The input of `unfollowUsers`.")
class UnfollowUsersInput:
    """The ids are not decoded yet."""

    user_ids: list[strawberry.ID] = strawberry.field(
        description="The global ids of the users to unfollow, 1 to 100. Duplicate ids produce one result."
    )


@strawberry.input(description="The input of `likePost`.")
class LikePostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post to like.")


@strawberry.input(description="The input of `unlikePost`.")
class UnlikePostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post to unlike.")


@strawberry.input(description="The input of `bookmarkPost`.")
class BookmarkPostInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post to bookmark.")


@strawberry.input(description="The input of `removeBookmark`.")
class RemoveBookmarkInput:
    """The id is not decoded yet."""

    post_id: strawberry.ID = strawberry.field(description="The global id of the post to remove from the bookmarks.")


@strawberry.input(description="The input of `muteUser`.")
class MuteUserInput:
    """The id is not decoded yet."""

    user_id: strawberry.ID = strawberry.field(description="The global id of the user to mute.")


@strawberry.input(description="The input of `unmuteUser`.")
class UnmuteUserInput:
    """The id is not decoded yet."""

    user_id: strawberry.ID = strawberry.field(description="The global id of the user to unmute.")


@strawberry.input(description="The input of `blockUser`.")
class BlockUserInput:
    """The id is not decoded yet."""

    user_id: strawberry.ID = strawberry.field(description="The global id of the user to block.")


@strawberry.input(description="The input of `unblockUser`.")
class UnblockUserInput:
    """The id is not decoded yet."""

    user_id: strawberry.ID = strawberry.field(description="The global id of the user to unblock.")


@strawberry.input(description="The input of `markNotificationsRead`.")
class MarkNotificationsReadInput:
    """The cursor is not decoded yet."""

    up_to: str = strawberry.field(
        description="The `cursor` of the newest notification that the viewer has seen, or of an event of the "
        "`notifications` subscription. All notifications up to this position are marked as read."
    )


@strawberry.input(description="The input of `createList`.")
class CreateListInput:
    """The values are not validated and the ids are not decoded yet."""

    name: str = strawberry.field(description="The name of the list, 1 to 50 characters.")
    user_ids: list[strawberry.ID] | None = strawberry.field(
        description="The global ids of the initial members, up to 100."
    )
    idempotency_key: str | None = strawberry.field(
        description="A key that makes retries safe, chosen by the client: 1 to 128 printable ASCII characters. For 24 "
        "hours, the same key, name and members return the same list, even if it has been renamed; a different input "
        "fails with `IDEMPOTENCY_MISMATCH`."
    )


@strawberry.input(description="The input of `updateList`. Omitted fields do not change.")
class UpdateListInput:
    """The values are not validated and the ids are not decoded yet."""

    list_id: strawberry.ID = strawberry.field(description="The global id of one of the viewer's lists.")
    name: str | None = strawberry.field(description="The new name, 1 to 50 characters.")
    add_user_ids: list[strawberry.ID] | None = strawberry.field(
        description="The global ids of the users to add, up to 100. Users who are already members are ignored."
    )
    remove_user_ids: list[strawberry.ID] | None = strawberry.field(
        description="The global ids of the users to remove, up to 100. Users who are not members are ignored."
    )


@strawberry.input(description="The input of `deleteList`.")
class DeleteListInput:
    """The id is not decoded yet."""

    list_id: strawberry.ID = strawberry.field(description="The global id of one of the viewer's lists.")


@strawberry.input(description="The input of `report`.")
class ReportInput:
    """The values are not validated and the id is not decoded yet."""

    subject_id: strawberry.ID = strawberry.field(description="The global id of the user or post to report.")
    reason: ReportReason = strawberry.field(description="Why the user or post is reported.")
    comment: str | None = strawberry.field(description="What the operators should know, up to 1,000 characters.")


@strawberry.input(
    description="A geographic area, including its edges. If `west` is greater than `east`, it crosses the antimeridian."
)
class BoundingBox:
    """The values are not validated yet."""

    south: float = strawberry.field(description="The latitude of the southern edge in degrees, from -90 to 90.")
    west: float = strawberry.field(description="The longitude of the western edge in degrees, from -180 to 180.")
    north: float = strawberry.field(description="The latitude of the northern edge in degrees, from `south` to 90.")
    east: float = strawberry.field(description="The longitude of the eastern edge in degrees, from -180 to 180.")


@strawberry.input(
    description="Selects posts. A post must match all given fields; at least one is required. The filter of the "
    "`events` subscription has the same fields: with the same values and `kinds: [POST_ADDED, POST_REMOVED]`, the "
    "stream continues where a search ends."
)
class PostFilter:
    """The values are not validated and the ids are not decoded yet. None means any."""

    users: list[strawberry.ID] | None = strawberry.field(description="Match posts by these users: 1 to 100 global ids.")
    keywords: list[str] | None = strawberry.field(
        description="Match posts that contain at least one of these entries. An entry consists of one or more words, "
        "`#hashtags`, or phrases in a script without spaces, such as 北京; the post must contain all parts of the "
        "entry, in any order and ignoring case. At most 20 entries, each with up to 25 words of up to 60 characters."
    )
    within: BoundingBox | None = strawberry.field(description="Match posts located in this area.")


@strawberry.input(
    description="Selects the events of a stream. An event must match all given fields. Requires `users`, `keywords`, "
    "`within` or `firehose: true`."
)
class EventFilter:
    """The values are not validated and the ids are not decoded yet. None means any."""

    users: list[strawberry.ID] | None = strawberry.field(
        description="Match posts and reposts by these users, and follows and unfollows in which one of them is the "
        "follower or the followed user. 1 to 500 global ids."
    )
    keywords: list[str] | None = strawberry.field(
        description="Match posts that contain at least one of these entries. An entry consists of one or more words, "
        "`#hashtags`, or phrases in a script without spaces, such as 北京; the post must contain all parts of the "
        "entry, in any order and ignoring case. At most 400 entries, each with up to 25 words of up to 60 characters, "
        "and 2,000 terms in total: a word is one term, and a phrase has one term for each pair of neighbouring "
        "characters. Follows, reposts and the removal of reposts never match. Replayed deletions of posts always match."
    )
    within: BoundingBox | None = strawberry.field(
        description="Match posts located in this area. Follows, reposts and the removal of reposts never match. "
        "Deletions of posts, which have no location, always match."
    )
    sample: float | None = strawberry.field(
        description="Match this fraction of the events, above 0 and at most 1. The same fraction selects the same "
        "events for all clients, and a larger fraction includes the events of a smaller one. A post or repost and its "
        "removal are selected together."
    )
    firehose: bool | None = strawberry.field(description="Match all events. Requires the `firehose` permission.")
    kinds: list[EventKind] | None = strawberry.field(
        description="Match only events of these kinds. Defaults to all kinds."
    )
