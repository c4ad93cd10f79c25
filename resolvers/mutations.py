"""The resolvers of mutations of posts and follows, and the records behind their payloads."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import Follow, FollowOutcome, FollowRefusal, Location, Post, User
from graph.visibility.views import blocked
from resolvers import attachments, ids, inputs
from resolvers.context import Context, Viewer
from resolvers.payloads import Payload, load_users, mutation, post_number
from resolvers.threads import optional_posts

MAX_FOLLOWS = 100
FOLLOWING = (FollowOutcome.FOLLOWED, FollowOutcome.ALREADY_FOLLOWING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPostPayload(Payload):
    """The record of `PublishPostPayload`."""

    post: Post | None = None

    @property
    def post_edge(self) -> Post | None:
        """The post, as the record of its edge in lists of posts."""
        return self.post

    @property
    def timeline_edge(self) -> Post | None:
        """The post, as the record of its edge in timelines, or None for a reply that most timelines leave out."""
        return self.post if self.post is not None and self.post.listed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePostPayload(Payload):
    """The record of `DeletePostPayload`. `reply_to` and `quoted_post` are ids of posts."""

    deleted_post_id: str | None = None
    viewer: Viewer | None = None
    reply_to: int | None = None
    quoted_post: int | None = None


@dataclass(frozen=True, slots=True)
class FollowResult:
    """The outcome for one id, or the error that prevented the change.

    `user` is a user id, or None if there is no such user.
    """

    user_id: str
    user: int | None
    outcome: FollowOutcome | None = None
    error: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowsPayload(Payload):
    """The record of `FollowUsersPayload` and `UnfollowUsersPayload`."""

    results: tuple[FollowResult, ...] = ()
    viewer: Viewer | None = None


@mutation(
    PublishPostPayload,
    ProblemCode.INVALID,
    ProblemCode.TEXT_EMPTY,
    ProblemCode.TEXT_TOO_LONG,
    ProblemCode.NOT_FOUND,
    ProblemCode.TOO_MANY,
    ProblemCode.IDEMPOTENCY_MISMATCH,
    ProblemCode.BLOCKED,
)
async def publish_post(
    context: Context,
    *,
    input: Annotated[inputs.PublishPostInput, strawberry.argument(description="The new post.")],
) -> PublishPostPayload:
    """Publish a post as the viewer."""
    viewer = context.require_viewer()
    location = input.location
    post = await context.graph.posts.publish(
        viewer.user,
        input.text or "",
        platform=input.platform,
        location=None if location is None else Location(location.latitude, location.longitude),
        attachments=attachments.as_attachments(input.attachments),
        reply_to=None if input.reply_to_id is None else post_number(input.reply_to_id, "replyToId"),
        quote_of=None if input.quoted_post_id is None else post_number(input.quoted_post_id, "quotedPostId"),
        idempotency_key=input.idempotency_key,
    )
    return PublishPostPayload(post=post)


@mutation(DeletePostPayload, ProblemCode.NOT_FOUND, ProblemCode.NOT_ALLOWED)
async def delete_post(
    context: Context,
    *,
    input: Annotated[inputs.DeletePostInput, strawberry.argument(description="The post to delete.")],
) -> DeletePostPayload:
    """Delete one of the viewer's posts."""
    viewer = context.require_viewer()
    deleted = await context.graph.posts.delete(viewer.user, post_number(input.post_id, "postId"))
    targets = (None, None) if deleted is None else (deleted.reply_to, deleted.repost_of)
    return DeletePostPayload(deleted_post_id=input.post_id, viewer=viewer, reply_to=targets[0], quoted_post=targets[1])


async def parents_of_deleted(payloads: Sequence[DeletePostPayload], context: Context) -> list[Post | Exception | None]:
    """Return the posts that the deleted posts replied to, as they are after the deletions. One round trip."""
    return await optional_posts(context, [payload.reply_to for payload in payloads])


async def quoted_by_deleted(payloads: Sequence[DeletePostPayload], context: Context) -> list[Post | Exception | None]:
    """Return the posts that the deleted posts quoted, as they are after the deletions. One round trip."""
    return await optional_posts(context, [payload.quoted_post for payload in payloads])


@mutation(FollowsPayload, ProblemCode.INVALID, ProblemCode.TOO_MANY)
async def follow_users(
    context: Context,
    *,
    input: Annotated[inputs.FollowUsersInput, strawberry.argument(description="The users to follow.")],
) -> FollowsPayload:
    """Follow users as the viewer."""
    return await change_follows(context, context.graph.follows.follow, input.user_ids)


@mutation(FollowsPayload, ProblemCode.INVALID, ProblemCode.TOO_MANY)
async def unfollow_users(
    context: Context,
    *,
    input: Annotated[inputs.UnfollowUsersInput, strawberry.argument(description="The users to unfollow.")],
) -> FollowsPayload:
    """Unfollow users as the viewer."""
    return await change_follows(context, context.graph.follows.unfollow, input.user_ids)


async def change_follows(
    context: Context,
    change: Callable[[int, Sequence[int]], Awaitable[Sequence[FollowOutcome | FollowRefusal]]],
    user_ids: Sequence[str],
) -> FollowsPayload:
    """Follow or unfollow the users with these ids. Return one result for each distinct id, in order."""
    viewer = context.require_viewer()
    users = decode_user_ids(user_ids)
    valid = [user for user in users.values() if user is not None]
    found = dict(zip(valid, await change(viewer.user, valid), strict=True)) if valid else {}
    results = []
    for user_id, user in users.items():
        result = FollowRefusal.NOT_FOUND if user is None else found[user]
        if isinstance(result, FollowOutcome):
            results.append(FollowResult(user_id, user, outcome=result))
        else:
            path = ("userIds", str(user_ids.index(user_id)))
            problem = follow_problem(result, path, context.graph.tuning.max_following)
            results.append(FollowResult(user_id, None if result is FollowRefusal.NOT_FOUND else user, error=problem))
    return FollowsPayload(results=tuple(results), viewer=viewer)


def follow_problem(reason: FollowRefusal, path: tuple[str, ...], limit: int) -> Problem:
    """Return the error for an id that was refused. `limit` is the maximum number of followed users."""
    match reason:
        case FollowRefusal.NOT_FOUND:
            return Problem(ProblemCode.NOT_FOUND, "This user does not exist.", path)
        case FollowRefusal.SELF:
            return Problem(ProblemCode.INVALID, "Users cannot follow or unfollow themselves.", path)
        case FollowRefusal.BLOCKED:
            return blocked(*path).problems[0]
        case FollowRefusal.LIMIT_REACHED:
            message = f"You can follow at most {limit:,} users. No user was followed. Unfollow others first."
            return Problem.about(ProblemCode.TOO_MANY, message, path, {"max": limit})


def decode_user_ids(user_ids: Sequence[str]) -> dict[str, int | None]:
    """Return the numbers of distinct user ids; None for an id that is malformed or of another kind.

    Raises Rejected if there are no ids, or more than 100.
    """
    if not user_ids:
        raise Rejected.because(
            ProblemCode.INVALID,
            "The list of ids is empty. Send at least one id.",
            "userIds",
            min=1,
            max=MAX_FOLLOWS,
            length=0,
        )
    if len(user_ids) > MAX_FOLLOWS:
        message = f"The list has {len(user_ids)} ids; at most {MAX_FOLLOWS} are allowed. Send several requests."
        raise Rejected.because(ProblemCode.TOO_MANY, message, "userIds", max=MAX_FOLLOWS, length=len(user_ids))
    return {user_id: ids.number_or_none(ids.Kind.USER, user_id) for user_id in user_ids}


async def result_users(results: Sequence[FollowResult], context: Context) -> list[User | None]:
    """Return the user of each result. One round trip."""
    return await load_users(context, [result.user for result in results])


async def follow_edges(results: Sequence[FollowResult], context: Context) -> list[Follow | None]:
    """Return each follow as an entry of the viewer's list of followed users. One round trip.

    None if the viewer does not follow the user, or if the follow is not projected yet.
    """
    followed = [each.user for each in results if each.user is not None and each.outcome in FOLLOWING]
    relationships = iter(await context.loaders.relationships.fetch_many(followed))
    return [
        next(relationships).follow if each.user is not None and each.outcome in FOLLOWING else None for each in results
    ]
