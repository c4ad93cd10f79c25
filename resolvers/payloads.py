"""Payloads of mutations: invalid input is reported in `user_errors`, and nothing is written.

After each mutation the context forgets all loaded values, so that the payload and the later mutations of the document
show the new state. If the store cannot show the new state in time, look-ups of the changed objects fail instead.
"""

import warnings
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from graph.errors import Problem, ProblemCode, Rejected
from graph.model import Post, User
from graph.unshown import UNSHOWN
from graph.visibility.views import no_post
from resolvers import ids
from resolvers.context import Context
from resolvers.errors import RedactedError, code_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """The record of a payload. `user_errors` is empty if the mutation succeeded."""

    user_errors: tuple[Problem, ...] = ()


P = TypeVar("P", bound=Payload)
Q = ParamSpec("Q")
Mutation: TypeAlias = Callable[Concatenate[Context, Q], Coroutine[Any, Any, P]]


CODES: dict[Callable[..., Any], tuple[ProblemCode, ...]] = {}
"""The codes of the user errors of each resolver of a mutation, in the order of the schema."""


def mutation(payload: type[P], *codes: ProblemCode) -> Callable[[Mutation[Q, P]], Mutation[Q, P]]:
    """Return a decorator that turns Rejected into the payload's user errors and clears the context afterwards.

    `codes` are all codes that the user errors can have, for the description of the mutation. Any other code causes a
    RuntimeWarning, which fails tests.
    """

    def decorate(resolver: Mutation[Q, P]) -> Mutation[Q, P]:
        @wraps(resolver)
        async def resolve(context: Context, /, *args: Q.args, **kwargs: Q.kwargs) -> P:
            context.act_as_sender()
            unshown = UNSHOWN.set(context.unshown)
            try:
                return await resolver(context, *args, **kwargs)
            except Rejected as rejection:
                for code in {problem.code for problem in rejection.problems}.difference(codes):
                    warnings.warn(f"{resolver.__name__} does not declare {code}.", RuntimeWarning, stacklevel=2)
                return payload(user_errors=rejection.problems)
            finally:
                UNSHOWN.reset(unshown)
                context.forget()

        CODES[resolve] = tuple(sorted(codes, key=list(ProblemCode).index))
        return resolve

    return decorate


def redact_errors(resolver: Mutation[Q, P]) -> Mutation[Q, P]:
    """Remove the messages of unexpected errors, which may contain the input's password, before they are logged."""

    @wraps(resolver)
    async def resolve(context: Context, /, *args: Q.args, **kwargs: Q.kwargs) -> P:
        try:
            return await resolver(context, *args, **kwargs)
        except Exception as error:
            if isinstance(error, Rejected) or code_of(error) is not None:
                raise
            raise RedactedError(error).with_traceback(error.__traceback__) from None

    return resolve


def error_fields(problems: Sequence[Problem], context: Context) -> list[tuple[str, ...] | None]:
    """Return the path to each problem's field in the input; None if the problem does not concern a single field."""
    return [problem.field or None for problem in problems]


async def load_users(context: Context, users: Sequence[int | None]) -> list[User | None]:
    """Return the users with these ids; None where the id is None."""
    known = [user for user in users if user is not None]
    loaded = iter(await context.loaders.users.fetch_many(known))
    return [None if user is None else next(loaded) for user in users]


async def load_posts(context: Context, posts: Sequence[int | None]) -> list[Post | None]:
    """Return the posts with these ids; None where the id is None, or the post is deleted or hidden."""
    known = [post for post in posts if post is not None]
    loaded = iter(await context.loaders.posts.fetch_many(known))
    return [None if post is None else next(loaded) for post in posts]


def post_number(post_id: str, *field: str) -> int:
    """Return the number of a post's global id. Raises Rejected (NOT_FOUND), also for a malformed id."""
    number = ids.number_or_none(ids.Kind.POST, post_id)
    if number is None:
        raise no_post(*field)
    return number
