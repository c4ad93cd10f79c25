"""Mutations: ids decoded, the graph asked to write, and the outcome as the record behind a payload.

A rule that the input breaks is an entry of `user_errors`, and then nothing was written. After a write all
that was loaded is forgotten, so that the payload, and the mutations after it in one document, show the new
state.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import strawberry

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import FollowOutcome, Location, Post, Session, User
from resolvers import ids, inputs
from resolvers.context import Context
from resolvers.errors import BadInput, Withheld, code_of

MAX_FOLLOWS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What every mutation answers: the rules that the input broke; none if it succeeded."""

    user_errors: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted(Payload):
    """The answer to signing up and logging in."""

    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileUpdated(Payload):
    """The answer to changing the profile."""

    user: User | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostPublished(Payload):
    """The answer to publishing."""

    post: Post | None = None

    @property
    def post_edge(self) -> Post | None:
        """The post, standing for its edge."""
        return self.post


@dataclass(frozen=True, slots=True, kw_only=True)
class PostDeleted(Payload):
    """The answer to deleting a post."""

    deleted_post_id: str | None = None
    viewer: int | None = None


@dataclass(frozen=True, slots=True)
class FollowResult:
    """What became of one id. `user` is None if the id stands for nobody."""

    user_id: str
    outcome: FollowOutcome
    user: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowsChanged(Payload):
    """The answer to following and unfollowing."""

    results: tuple[FollowResult, ...] = ()
    viewer: int | None = None


P = TypeVar("P", bound=Payload)
Q = ParamSpec("Q")
Mutation: TypeAlias = Callable[Concatenate[Context, Q], Coroutine[Any, Any, P]]


def answering(payload: type[P]) -> Callable[[Mutation[Q, P]], Mutation[Q, P]]:
    """Turn a rejected input into the payload's user errors, and forget what was loaded before the write."""

    def wrap(mutation: Mutation[Q, P]) -> Mutation[Q, P]:
        @wraps(mutation)
        async def answer(context: Context, /, *args: Q.args, **kwargs: Q.kwargs) -> P:
            try:
                return await mutation(context, *args, **kwargs)
            except Rejected as rejection:
                return payload(user_errors=rejection.problems)
            finally:
                context.forget()

        return answer

    return wrap


def keeping_secrets(mutation: Mutation[Q, P]) -> Mutation[Q, P]:
    """Withhold the text of unexpected errors of a mutation whose input has a password: they are logged."""

    @wraps(mutation)
    async def keep(context: Context, /, *args: Q.args, **kwargs: Q.kwargs) -> P:
        try:
            return await mutation(context, *args, **kwargs)
        except Exception as error:
            if isinstance(error, Rejected) or code_of(error) is not None:
                raise
            raise Withheld(error).with_traceback(error.__traceback__) from None

    return keep


@answering(SessionStarted)
@keeping_secrets
async def sign_up(
    context: Context,
    *,
    input: Annotated[
        inputs.SignUpInput, strawberry.argument(description="The login, password and name of the new user.")
    ],
) -> SessionStarted:
    """Sign a new person up and in."""
    user = await context.graph.users.sign_up(input.login, input.password, input.name, context.client.network)
    context.users_created += 1
    return SessionStarted(session=await context.graph.sessions.start(user.id))


@answering(SessionStarted)
@keeping_secrets
async def log_in(
    context: Context,
    *,
    input: Annotated[inputs.LogInInput, strawberry.argument(description="The login and password.")],
) -> SessionStarted:
    """Start a session for a person who knows the password."""
    user = await context.graph.users.check_password(input.login, input.password, context.client.network)
    return SessionStarted(session=await context.graph.sessions.start(user.id))


@answering(Payload)
async def log_out(
    context: Context,
    *,
    input: Annotated[inputs.LogOutInput, strawberry.argument(description="Which sessions to end.")],
) -> Payload:
    """End the viewer's session, or all of them; later fields of the document have no viewer, even if this one fails."""
    viewer = context.end_session()
    await context.graph.sessions.end(viewer.user, None if input.everywhere else viewer.session)
    return Payload()


@answering(ProfileUpdated)
async def update_profile(
    context: Context,
    *,
    input: Annotated[inputs.UpdateProfileInput, strawberry.argument(description="The fields to change.")],
) -> ProfileUpdated:
    """Change the viewer's name or bio."""
    viewer = context.require_viewer()
    return ProfileUpdated(user=await context.graph.users.update_profile(viewer.user, name=input.name, bio=input.bio))


@answering(PostPublished)
async def publish_post(
    context: Context,
    *,
    input: Annotated[inputs.PublishPostInput, strawberry.argument(description="The new post.")],
) -> PostPublished:
    """Publish a post of the viewer's."""
    viewer = context.require_viewer()
    at = input.location
    post = await context.graph.posts.publish(
        viewer.user,
        input.text,
        platform=input.platform,
        location=None if at is None else Location(at.latitude, at.longitude),
        idempotency_key=input.idempotency_key,
    )
    return PostPublished(post=post)


@answering(PostDeleted)
async def delete_post(
    context: Context,
    *,
    input: Annotated[inputs.DeletePostInput, strawberry.argument(description="The post to delete.")],
) -> PostDeleted:
    """Delete a post of the viewer's."""
    viewer = context.require_viewer()
    try:
        post = ids.number(ids.Kind.POST, input.id)
    except BadInput as error:
        raise Rejected.because(ProblemCode.INVALID, str(error), "id") from None
    if post is None:
        raise Rejected.because(ProblemCode.NOT_FOUND, "There is no such post.", "id")
    await context.graph.posts.delete(viewer.user, post)
    return PostDeleted(deleted_post_id=input.id, viewer=viewer.user)


@answering(FollowsChanged)
async def follow(
    context: Context,
    *,
    input: Annotated[inputs.FollowInput, strawberry.argument(description="The users to follow.")],
) -> FollowsChanged:
    """Let the viewer follow people."""
    return await change_follows(context, context.graph.follows.follow, input.user_ids)


@answering(FollowsChanged)
async def unfollow(
    context: Context,
    *,
    input: Annotated[inputs.UnfollowInput, strawberry.argument(description="The users to unfollow.")],
) -> FollowsChanged:
    """Let the viewer follow people no longer."""
    return await change_follows(context, context.graph.follows.unfollow, input.user_ids)


async def change_follows(
    context: Context,
    change: Callable[[int, Sequence[int]], Awaitable[Sequence[FollowOutcome]]],
    user_ids: Sequence[str],
) -> FollowsChanged:
    """Follow or unfollow those whom ids stand for; answer each distinct id once, in order."""
    viewer = context.require_viewer()
    people = decode_people(user_ids)
    known = [user for user in people.values() if user is not None]
    outcomes = dict(zip(known, await change(viewer.user, known), strict=True)) if known else {}
    results = tuple(
        FollowResult(text, FollowOutcome.NOT_FOUND, None)
        if user is None or outcomes[user] is FollowOutcome.NOT_FOUND
        else FollowResult(text, outcomes[user], user)
        for text, user in people.items()
    )
    if FollowOutcome.LIMIT_REACHED not in outcomes.values():
        return FollowsChanged(results=results, viewer=viewer.user)
    problem = Problem(ProblemCode.TOO_MANY, "You would follow too many people. Nobody was followed.", ("userIds",))
    return FollowsChanged(results=results, user_errors=(problem,))


def decode_people(user_ids: Sequence[str]) -> dict[str, int | None]:
    """Decode ids of people, duplicates once; None for an id of something else. Raises Rejected."""
    if not user_ids:
        raise Rejected.because(ProblemCode.INVALID, "Give at least one id.", "userIds")
    if len(user_ids) > MAX_FOLLOWS:
        message = f"At most {MAX_FOLLOWS} ids at once, not {len(user_ids)}."
        raise Rejected.because(ProblemCode.TOO_MANY, message, "userIds")
    people: dict[str, int | None] = {}
    problems = []
    for index, text in enumerate(user_ids):
        try:
            people[text] = ids.number(ids.Kind.USER, text)
        except BadInput as error:
            problems.append(Problem(ProblemCode.INVALID, str(error), ("userIds", str(index))))
    if problems:
        raise Rejected(*problems)
    return people


async def viewers(payloads: Sequence[PostDeleted | FollowsChanged], context: Context) -> list[User | None]:
    """Give the viewer, as after the write; None if it failed. One round trip."""
    return await users_or_none(context, [payload.viewer for payload in payloads])


async def result_users(results: Sequence[FollowResult], context: Context) -> list[User | None]:
    """Give the people whom ids stood for. One round trip."""
    return await users_or_none(context, [result.user for result in results])


async def users_or_none(context: Context, users: Sequence[int | None]) -> list[User | None]:
    """Load people where there is an id."""
    known = [user for user in users if user is not None]
    found = iter(await context.loaders.users.load_many(known))
    return [None if user is None else next(found) for user in users]


def tokens(sessions: Sequence[Session], context: Context) -> list[str]:
    """Make the access tokens of sessions."""
    return [context.issue_token(session) for session in sessions]


async def session_users(sessions: Sequence[Session], context: Context) -> list[User | None]:
    """Give the people whose sessions these are. One round trip."""
    return await context.loaders.users.load_many(session.user for session in sessions)


def fields(problems: Sequence[Problem], context: Context) -> list[tuple[str, ...] | None]:
    """Give the paths of problems inside the input; None for one that is not about a field."""
    return [problem.field or None for problem in problems]
