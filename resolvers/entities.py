"""The resolvers of the mentions, hashtags and links in texts."""

import asyncio
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from graph.archive.usage import count_items
from graph.model import Post, User
from graph.posts.mentions import users_of_logins
from graph.text.entities import MAX_ENTITIES, SIGN, USUAL_ENTITIES, Hashtag, Link, Mention, entities_of
from resolvers.context import Context

STEPS_PER_ENTITY = 4
"""The cost of an entity, in the items that `graph.archive.usage` counts."""


@dataclass(frozen=True, slots=True)
class UserMention:
    """The record of `MentionEntity`. `user` is a user id; the user may be gone or hidden."""

    start: int
    end: int
    user: int


TextEntity: TypeAlias = UserMention | Hashtag | Link


async def entities(posts: Sequence[Post], context: Context) -> list[list[TextEntity]]:
    """Return the entities in the texts of posts. One round trip if there are mentions, shared with loading the authors.

    A mention of a login that no user had when the post was published is plain text. Entities in excess of the usual
    number per post are charged to the operation afterwards.
    """
    mentioned = list({user: None for post in posts for user in post.mentions})
    if mentioned:
        context.loaders.view.begin(mentioned)
    users = await context.loaders.users.fetch_many(mentioned) if mentioned else []
    logins = {user.id: user.login for user in users if user is not None}
    found = [entities_of_post(post, logins) if SIGN.search(post.text) else [] for post in posts]
    count_items(STEPS_PER_ENTITY * sum(max(0, len(each) - USUAL_ENTITIES) for each in found))
    return found


def entities_of_post(post: Post, logins: dict[int, str]) -> list[TextEntity]:
    """Return the entities of a post, at most 50. `logins` maps the ids of the mentioned users to their logins."""
    users = users_of_logins(post.text, post.mentions, logins)
    found: list[TextEntity] = []
    for entity in entities_of(post.text)[:MAX_ENTITIES]:
        if not isinstance(entity, Mention):
            found.append(entity)
        elif entity.login in users:
            found.append(UserMention(entity.start, entity.end, users[entity.login]))
    return found


async def mentioned_users(mentions: Sequence[UserMention], context: Context) -> list[User | None]:
    """Return the users who are mentioned; None for a user who is gone or hidden from the viewer.

    The users were loaded with the entities, so a round trip is needed only for a viewer with hundreds of blocks.
    """
    ids = [mention.user for mention in mentions]
    users = await context.loaders.users.fetch_many(ids)
    return without(await context.loaders.view.hidden(ids), users)


async def users_mentioned_to_viewers(
    mentions: Sequence[UserMention], contexts: Sequence[Context]
) -> list[list[User | None]]:
    """Return the result of `mentioned_users` for each context. One round trip, regardless of the number of viewers."""
    ids = [mention.user for mention in mentions]
    viewers = list({context.viewer.user: None for context in contexts if context.viewer is not None})
    users, hidden = await asyncio.gather(
        contexts[0].loaders.users.fetch_many(ids), contexts[0].graph.visibility.hidden_from(viewers, ids)
    )
    seen = {viewer: without(each, users) for viewer, each in zip(viewers, hidden, strict=True)}
    return [users if context.viewer is None else seen[context.viewer.user] for context in contexts]


def without(hidden: Set[int], users: list[User | None]) -> list[User | None]:
    """Return the users, with None in place of users whose ids are in `hidden`."""
    return [None if user is not None and user.id in hidden else user for user in users] if hidden else users
