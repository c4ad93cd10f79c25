"""The root type of mutations, and the payload types of posts and follows."""

from collections.abc import Callable
from typing import Any, ClassVar

import strawberry

from executor.fields import batched, single
from resolvers import accounts, blocks, bookmarks, likes, lists, mutations, notifications, reports, reposts, sessions
from resolvers.enums import FollowOutcome
from resolvers.payloads import CODES
from schema.account import (
    ChangePasswordPayload,
    DeleteAccountPayload,
    EndSessionPayload,
    LogInPayload,
    LogOutPayload,
    SignUpPayload,
    UpdateProfilePayload,
)
from schema.blocks import BlockUserPayload, MuteUserPayload, UnblockUserPayload, UnmuteUserPayload
from schema.bookmark import BookmarkPostPayload, RemoveBookmarkPayload
from schema.connections import FollowEdge, PostEdge
from schema.like import LikePostPayload, UnlikePostPayload
from schema.notification import MarkNotificationsReadPayload
from schema.post import Post
from schema.report import ReportPayload
from schema.repost import RepostPostPayload, UnrepostPostPayload
from schema.timeline import TimelineEdge
from schema.user import User
from schema.user_error import ERRORS, UserError
from schema.user_list import CreateListPayload, DeleteListPayload, UpdateListPayload
from schema.viewer import Viewer


@strawberry.type(description="The result of `publishPost`.")
class PublishPostPayload:
    """Backed by `resolvers.mutations.PublishPostPayload`."""

    record: ClassVar[type] = mutations.PublishPostPayload

    post: Post | None = strawberry.field(description="The new post. Null on failure.")
    post_edge: PostEdge | None = strawberry.field(
        description="The new post as an edge for lists of posts, such as `Post.replies`. Insert it before the first "
        "edge with a smaller `cursor`. Null on failure."
    )
    timeline_edge: TimelineEdge | None = strawberry.field(
        description="The new post as a timeline edge. Insert it before the first edge with a smaller `cursor`. Null on "
        "failure, and for a reply that belongs only in `User.repliesTimeline`."
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `deletePost`.")
class DeletePostPayload:
    """Backed by `resolvers.mutations.DeletePostPayload`."""

    record: ClassVar[type] = mutations.DeletePostPayload

    deleted_post_id: strawberry.ID | None = strawberry.field(
        description="The global id of the deleted post, to remove it from caches. Null on failure."
    )
    viewer: Viewer | None = strawberry.field(description="The viewer after the deletion. Null on failure.")
    reply_to: Post | None = batched(
        mutations.parents_of_deleted,
        description="The post that the deleted post replied to, with its new `repliesCount`. Null if there is none, or "
        "if the post had already been deleted.",
    )
    quoted_post: Post | None = batched(
        mutations.quoted_by_deleted,
        description="The post that the deleted post quoted, with its new `quotesCount`. Null if there is none, or if "
        "the post had already been deleted.",
    )
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of following or unfollowing one user.")
class FollowResult:
    """Backed by `resolvers.mutations.FollowResult`."""

    record: ClassVar[type] = mutations.FollowResult

    user_id: strawberry.ID = strawberry.field(description="The id from the input.")
    outcome: FollowOutcome | None = strawberry.field(
        description="What the mutation changed. Null if there is an error."
    )
    error: UserError | None = strawberry.field(
        description="Why the mutation did not change the follow: `NOT_FOUND`, `BLOCKED`, `INVALID` for the viewer's "
        "own id, or `TOO_MANY` if the viewer would follow too many users. Null if there is an outcome."
    )
    user: User | None = batched(
        mutations.result_users,
        description="The user after the change. Null if the id does not identify a user.",
    )
    follow_edge: FollowEdge | None = batched(
        mutations.follow_edges,
        description="The follow as an edge of the viewer's `following`: the newest one if the outcome is `FOLLOWED`, "
        "so it belongs at the top of the list. Null unless the viewer follows the user.",
    )


@strawberry.type(description="The result of `followUsers`.")
class FollowUsersPayload:
    """Backed by `resolvers.mutations.FollowsPayload`."""

    record: ClassVar[type] = mutations.FollowsPayload

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the input. Empty if there are `userErrors`."
    )
    viewer: Viewer | None = strawberry.field(description="The viewer after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


@strawberry.type(description="The result of `unfollowUsers`.")
class UnfollowUsersPayload:
    """Backed by `resolvers.mutations.FollowsPayload`."""

    record: ClassVar[type] = mutations.FollowsPayload

    results: list[FollowResult] = strawberry.field(
        description="One result for each distinct id, in the order of the input. Empty if there are `userErrors`."
    )
    viewer: Viewer | None = strawberry.field(description="The viewer after the change. Null on failure.")
    user_errors: list[UserError] = strawberry.field(description=ERRORS)


def change(resolver: Callable[..., Any], *, description: str) -> Any:
    """Declare a mutation. Its description ends with the codes of its user errors."""
    codes = ", ".join(f"`{code.name}`" for code in CODES[resolver])
    return single(resolver, description=f"{description} User errors: {codes}." if codes else description)


@strawberry.type(
    description="The root of all mutations. All except `signUp` and `logIn` require a viewer, that is, a logged-in "
    "user. Invalid input is reported in `userErrors`, in which case nothing is written. A mutation that fails with an "
    "entry in `errors` returns null."
)
class Mutation:
    """There is no root value."""

    sign_up: SignUpPayload | None = change(
        accounts.sign_up,
        description="Create an account and start a session. In the payload, the new user is the viewer.",
    )
    log_in: LogInPayload | None = change(
        accounts.log_in,
        description="Start a session with a login and password. In the payload, the user who has logged in is the "
        "viewer.",
    )
    log_out: LogOutPayload | None = change(
        accounts.log_out,
        description="End the current session or all of the viewer's sessions. Their tokens stop working immediately.",
    )
    end_session: EndSessionPayload | None = change(
        sessions.end_session,
        description="End one of the viewer's sessions, such as the session of a lost device. Its token stops working "
        "and its subscriptions end immediately.",
    )
    change_password: ChangePasswordPayload | None = change(
        accounts.change_password,
        description="Change the viewer's password. All of the viewer's sessions end immediately, including the "
        "session of this request: continue with the new credentials.",
    )
    delete_account: DeleteAccountPayload | None = change(
        accounts.delete_account,
        description="Permanently delete the viewer's account. All of the viewer's sessions end, and the viewer's "
        "profile, posts and other data are hidden from all users immediately. Nobody can sign up with the login "
        "again.",
    )
    update_profile: UpdateProfilePayload | None = change(
        accounts.update_profile, description="Update the viewer's name, bio, picture or website."
    )
    publish_post: PublishPostPayload | None = change(
        mutations.publish_post, description="Publish a post as the viewer."
    )
    delete_post: DeletePostPayload | None = change(
        mutations.delete_post,
        description="Permanently delete one of the viewer's posts. No later request returns the post.",
    )
    report: ReportPayload | None = change(
        reports.report,
        description="Report a user or a post to the operators. Reporting the same user or post again within a day "
        "changes nothing.",
    )
    repost_post: RepostPostPayload | None = change(
        reposts.repost_post,
        description="Show a post to the viewer's followers without adding text or attachments. Reposting a post again "
        "changes nothing. The repost appears in the viewer's timeline and in the home timelines of the viewer's "
        "followers.",
    )
    unrepost_post: UnrepostPostPayload | None = change(
        reposts.unrepost_post, description="Undo the viewer's repost of a post. Quotes are not affected."
    )
    follow_users: FollowUsersPayload | None = change(
        mutations.follow_users,
        description="Follow users. Their posts and reposts appear in the viewer's home timeline immediately. If the "
        "viewer would then follow too many users, none of the users in the input is followed.",
    )
    unfollow_users: UnfollowUsersPayload | None = change(
        mutations.unfollow_users,
        description="Unfollow users. Their posts and reposts disappear from the viewer's home timeline immediately.",
    )
    mute_user: MuteUserPayload | None = change(
        blocks.mute_user,
        description="Mute a user without notifying them. The user's posts, and reposts of those posts, disappear "
        "immediately from the viewer's home timeline and lists, and from the public timeline as the viewer sees it. "
        "Profiles, threads and search still show these posts.",
    )
    unmute_user: UnmuteUserPayload | None = change(
        blocks.unmute_user, description="Unmute a user. The viewer's timelines show the user's posts again."
    )
    block_user: BlockUserPayload | None = change(
        blocks.block_user,
        description="Block a user. The follows between the two users end, and neither can see the other's "
        "posts, timelines, likes or lists. Profiles and the `relationship` stay visible to both.",
    )
    unblock_user: UnblockUserPayload | None = change(
        blocks.unblock_user,
        description="Unblock a user. Hidden content becomes visible again, but the follows between the two users are "
        "not restored.",
    )
    like_post: LikePostPayload | None = change(
        likes.like_post, description="Like a post. Liking a post again changes nothing."
    )
    unlike_post: UnlikePostPayload | None = change(
        likes.unlike_post,
        description="Remove the viewer's like from a post. If the viewer does not like the post, nothing changes.",
    )
    bookmark_post: BookmarkPostPayload | None = change(
        bookmarks.bookmark_post,
        description="Bookmark a post. Only the viewer can see the bookmark. Bookmarking a post again changes nothing.",
    )
    remove_bookmark: RemoveBookmarkPayload | None = change(
        bookmarks.remove_bookmark, description="Remove a bookmark. Removing a bookmark again changes nothing."
    )
    mark_notifications_read: MarkNotificationsReadPayload | None = change(
        notifications.mark_notifications_read,
        description="Mark the viewer's notifications as read up to a cursor. A cursor older than the last one marked "
        "has no effect.",
    )
    create_list: CreateListPayload | None = change(
        lists.create_list,
        description="Create a list of users, whose posts the viewer can then read separately from the home timeline. "
        "Only the viewer sees the list; its members are not notified. A user can have at most 50 lists.",
    )
    update_list: UpdateListPayload | None = change(
        lists.update_list,
        description="Rename one of the viewer's lists, and add or remove members. A list can have at most 500 members. "
        "Adding a member again, or removing a user who is not a member, changes nothing.",
    )
    delete_list: DeleteListPayload | None = change(
        lists.delete_list,
        description="Permanently delete one of the viewer's lists. Deleting it again succeeds for at least a day.",
    )
