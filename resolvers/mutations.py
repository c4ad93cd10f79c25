"""The resolvers of mutations of posts and follows, and the records behind their payloads."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import Follow, FollowOutcome, Location, Post, User
from graph.visibility.views import no_post
from resolvers import attachments, ids, inputs
from resolvers.context import Context
from resolvers.errors import BadInput
from resolvers.payloads import Payload, load_users, mutation, post_number
from resolvers.threads import related

MAX_FOLLOWS = 100
FOLLOWING = (FollowOutcome.FOLLOWED, FollowOutcome.ALREADY_FOLLOWING)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPostPayload(Payload):
    """The record of `PublishPostPayload`."""

    post: Post | None = None

    @property
    def post_edge(self) -> Post | None:
        """The post, as the record of its edge."""
        return self.post


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePostPayload(Payload):
    """The record of `DeletePostPayload`. `viewer` is a user id, `reply_to` and `repost_of` are ids of posts."""

    deleted_post_id: str | None = None
    viewer: int | None = None
    reply_to: int | None = None
    repost_of: int | None = None


@dataclass(frozen=True, slots=True)
class FollowResult:
    """The outcome for one id. `user` is a user id, or None if there is no such user."""

    user_id: str
    outcome: FollowOutcome
    user: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowsPayload(Payload):
    """The record of `FollowPayload` and `UnfollowPayload`. `viewer` is a user id."""

    results: tuple[FollowResult, ...] = ()
    viewer: int | None = None


@mutation(PublishPostPayload)
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
        attachments=attachments.given(input.attachments),
        reply_to=None if input.reply_to is None else post_number(input.reply_to, "replyTo"),
        quote_of=None if input.quote_of is None else post_number(input.quote_of, "quoteOf"),
        idempotency_key=input.idempotency_key,
    )
    return PublishPostPayload(post=post)


@mutation(DeletePostPayload)
async def delete_post(
    context: Context,
    *,
    input: Annotated[inputs.DeletePostInput, strawberry.argument(description="The post to delete.")],
) -> DeletePostPayload:
    """Delete one of the viewer's posts."""
    viewer = context.require_viewer()
    try:
        post = ids.number(ids.Kind.POST, input.id)
    except BadInput as error:
        raise Rejected.because(ProblemCode.INVALID, str(error), "id") from None
    if post is None:
        raise no_post("id")
    deleted = await context.graph.posts.delete(viewer.user, post)
    targets = (None, None) if deleted is None else (deleted.reply_to, deleted.repost_of)
    return DeletePostPayload(deleted_post_id=input.id, viewer=viewer.user, reply_to=targets[0], repost_of=targets[1])


async def deleted_replies_parents(
    payloads: Sequence[DeletePostPayload], context: Context
) -> list[Post | Exception | None]:
    """Return the posts that the deleted posts replied to, as they are after the deletions. One round trip."""
    return await related(context, [payload.reply_to for payload in payloads])


async def deleted_quotes_originals(
    payloads: Sequence[DeletePostPayload], context: Context
) -> list[Post | Exception | None]:
    """Return the posts that the deleted posts quoted, as they are after the deletions. One round trip."""
    return await related(context, [payload.repost_of for payload in payloads])


@mutation(FollowsPayload)
async def follow(
    context: Context,
    *,
    input: Annotated[inputs.FollowInput, strawberry.argument(description="The users to follow.")],
) -> FollowsPayload:
    """Follow users as the viewer."""
    return await change_follows(context, context.graph.follows.follow, input.user_ids)


@mutation(FollowsPayload)
async def unfollow(
    context: Context,
    *,
    input: Annotated[inputs.UnfollowInput, strawberry.argument(description="The users to unfollow.")],
) -> FollowsPayload:
    """Unfollow users as the viewer."""
    return await change_follows(context, context.graph.follows.unfollow, input.user_ids)


async def change_follows(
    context: Context,
    change: Callable[[int, Sequence[int]], Awaitable[Sequence[FollowOutcome]]],
    user_ids: Sequence[str],
) -> FollowsPayload:
    """Follow or unfollow the users with these ids. Return one result for each distinct id, in order."""
    viewer = context.require_viewer()
    users = decode_user_ids(user_ids)
    valid = [user for user in users.values() if user is not None]
    outcomes = dict(zip(valid, await change(viewer.user, valid), strict=True)) if valid else {}
    results = tuple(
        FollowResult(user_id, FollowOutcome.NOT_FOUND, None)
        if user is None or outcomes[user] is FollowOutcome.NOT_FOUND
        else FollowResult(user_id, outcomes[user], user)
        for user_id, user in users.items()
    )
    return FollowsPayload(results=results, viewer=viewer.user)


def decode_user_ids(user_ids: Sequence[str]) -> dict[str, int | None]:
    """Return the numbers of distinct user ids; None for an id of another kind.

    Raises Rejected if there are no ids, more than 100 ids, or malformed ids.
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
    users: dict[str, int | None] = {}
    problems = []
    for index, user_id in enumerate(user_ids):
        try:
            users[user_id] = ids.number(ids.Kind.USER, user_id)
        except BadInput as error:
            problems.append(Problem(ProblemCode.INVALID, str(error), ("userIds", str(index))))
    if problems:
        raise Rejected(*problems)
    return users


async def payload_viewers(
    payloads: Sequence[DeletePostPayload | FollowsPayload], context: Context
) -> list[User | None]:
    """Return the viewer after each mutation; None if it failed. One round trip."""
    return await load_users(context, [payload.viewer for payload in payloads])


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
