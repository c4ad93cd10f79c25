"""The initial variables of the examples in the demo's playground: ids that suit the user who is logged in."""

import json
from typing import Any

from graph import Graph
from graph.model import RelationshipState
from graph.paging import CursorKind, Window, encode_cursor
from graph.visibility.views import View
from resolvers import ids
from server.demo.people import PASSWORD

FOLLOWED = "bob"  # the examples show this user's followers
PAGE = Window(20, forward=True)
NEWEST = Window(1, forward=True)
LATER = "<the id of a list, from the example Create list>"
SECRET = "<the user's password>"  # noqa: S105 - a placeholder

Values = dict[str, dict[str, Any]]


async def variables(graph: Graph, login: str) -> dict[str, str]:
    """Return the variables of the examples that need any, as JSON, keyed by the name of the example.

    Placeholders stand for the id of a list if the user has none, and for the password of an account to delete. About 20
    round trips.
    """
    viewer, followed = await graph.users.ids_of_logins([login, FOLLOWED])
    if viewer is None or followed is None:
        return {}
    view = graph.visibility.of(viewer)
    values: Values = {
        **await _about_users(graph, view, viewer, followed),
        **await _about_posts(graph, view, viewer, followed),
        **await _about_lists(graph, viewer, followed),
        **await _about_the_account(graph, view, viewer),
    }
    return {example: json.dumps(given, indent=2) for example, given in values.items()}


async def _about_users(graph: Graph, view: View, viewer: int, followed: int) -> Values:
    [followers] = await graph.follows.followers(view, [followed], PAGE)
    relations = await graph.relationships.between(viewer, [each.user for each in followers.items], view)
    strangers = [relation.subject for relation in relations if relation.state is RelationshipState.STRANGER]
    [following] = await graph.follows.following(view, [viewer], NEWEST)
    others = [followed, *(relation.subject for relation in relations)]
    other = next((user for user in others if user != viewer), followed)
    muted = (await graph.blocks.muted(viewer, NEWEST)).items
    blocked = (await graph.blocks.blocked(viewer, NEWEST)).items
    return {
        "follow": {"userIds": [_user((strangers or [followed])[0])]},
        "unfollow": {"userIds": [_user(follow.user) for follow in following.items]},
        **{name: {"userId": _user(other)} for name in ("mute", "block")},
        "unmute": {"userId": _user(muted[0].user if muted else other)},
        "unblock": {"userId": _user(blocked[0].user if blocked else other)},
        "new-followers": {"userIds": [_user(viewer)]},
        "live-timeline": {"timelineId": ids.encode(ids.Kind.USER_TIMELINE, followed)},
        "node": {"id": _user(followed)},
        "nodes": {"ids": [_user(followed)]},
    }


async def _about_posts(graph: Graph, view: View, viewer: int, followed: int) -> Values:
    """Return variables that name a post from the viewer's home timeline or a post by `followed`.

    Examples that undo something get a post that the viewer wrote, liked, bookmarked or reposted, if there is one.
    """
    home = await graph.timelines.home(viewer, PAGE, view)
    own, read = await graph.timelines.user(view, [viewer, followed], PAGE)
    found = [post for post in (*home.items, *read.items) if not post.is_plain_repost]
    found = [post for post in found if post.author != viewer] or found
    written = next((post for post in own.items if not post.is_plain_repost), None)
    values: Values = {} if written is None else {"delete-post": {"postId": _id(written.id)}}
    if not found:
        return values
    post = _id(found[0].id)
    thread = _id(next((each for each in found if each.replies), found[0]).id)
    liked = (await graph.likes.pages.of_user(view, viewer, NEWEST)).items
    bookmarked = (await graph.bookmarks.page(view, viewer, NEWEST)).items
    reposted = [each.repost_of for each in own.items if each.is_plain_repost and each.repost_of is not None]
    return values | {
        "post": {"id": post},
        "nodes": {"ids": [_user(followed), post]},
        "thread": {"id": thread},
        "live-thread": {"postId": thread},
        "reply": {"replyToId": post},
        "quote": {"quotedPostId": post},
        "like": {"postId": post},
        "bookmark": {"postId": post},
        "remove-bookmark": {"postId": _id(bookmarked[0].post.id) if bookmarked else post},
        "unlike": {"postId": _id(liked[0].post.id) if liked else post},
        "repost": {"postId": post},
        "unrepost": {"postId": _id(reposted[0]) if reposted else post},
        "report": {"subjectId": post, "reason": "SPAM", "comment": "An advertisement"},
    }


async def _about_lists(graph: Graph, viewer: int, followed: int) -> Values:
    lists = await graph.lists.of_user(viewer)
    list_ = ids.encode(ids.Kind.LIST, lists[0].id) if lists else LATER
    return {
        "create-list": {"name": "Friends", "userIds": [_user(followed)]},
        "list-timeline": {"id": list_},
        "update-list": {"listId": list_, "name": "Good friends", "addUserIds": [_user(followed)]},
        "delete-list": {"listId": list_},
    }


async def _about_the_account(graph: Graph, view: View, viewer: int) -> Values:
    values: Values = {
        "change-password": {"currentPassword": PASSWORD, "newPassword": "seven brown foxes"},
        "delete-account": {"password": SECRET},  # so that nobody deletes a user of the demo by mistake
    }
    notifications = (await graph.notifications.page(view, NEWEST)).items
    if notifications:
        values["mark-read"] = {"upTo": encode_cursor(CursorKind.NOTIFICATION, notifications[0].number)}
    else:
        values["mark-read"] = {"upTo": encode_cursor(CursorKind.LOG, await graph.log.recent_watermark())}
    sessions = await graph.sessions.live_sessions(viewer)
    if sessions:
        values["end-session"] = {"sessionId": ids.encode(ids.Kind.SESSION, sessions[-1].id)}
    return values


def _id(post: int) -> str:
    return ids.encode(ids.Kind.POST, post)


def _user(user: int) -> str:
    return ids.encode(ids.Kind.USER, user)
