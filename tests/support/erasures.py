"""The events that an eraser appends for a user, computed from the events of a history."""

from collections.abc import Sequence

from graph.log.events import (
    Blocked,
    Event,
    EventBody,
    Followed,
    Liked,
    ListChanged,
    ListCreated,
    ListDeleted,
    PostDeleted,
    PostPublished,
    Reposted,
    Unblocked,
    Unfollowed,
    Unliked,
    Unreposted,
)
from graph.relations.pair_sets import value_of
from graph.relations.register import PAIRS


def ends_of(user: int, events: Sequence[Event]) -> list[EventBody]:
    """Return the ends of what a user began, of what others began with the user, and of reposts of the user's posts."""
    pairs: dict[tuple[str, int, int | str], EventBody | None] = {}
    posts: dict[int, PostPublished] = {}
    lists: dict[tuple[int, int], bool] = {}
    reposts: dict[tuple[int, int], Unreposted] = {}
    for event in events:
        match event.body:
            case Followed(follower, followee) if user in (follower, followee):
                pairs["follow", follower, followee] = Unfollowed(follower, followee)
            case Unfollowed(follower, followee):
                pairs["follow", follower, followee] = None
            case Liked(liker, post, author) if user == liker:
                pairs["like", liker, post] = Unliked(liker, post, author)
            case Unliked(liker, post):
                pairs["like", liker, post] = None
            case Blocked(blocker, blocked) if user in (blocker, blocked):
                pairs["block", blocker, blocked] = Unblocked(blocker, blocked)
            case Unblocked(blocker, blocked):
                pairs["block", blocker, blocked] = None
            case Reposted(reposter, post, author):
                reposts[reposter, post] = Unreposted(reposter, post, event.number, author)
            case Unreposted(reposter, post):
                reposts.pop((reposter, post), None)
            case PostPublished(author) if user == author:
                posts[event.number] = event.body
            case PostDeleted(post=post):
                posts.pop(post, None)
            case ListCreated(owner, _, members):
                lists[owner, event.number] = user in members
            case ListChanged(owner, list_id, _, added, removed):
                lists[owner, list_id] = user in added or (lists.get((owner, list_id), False) and user not in removed)
            case ListDeleted(owner, list_id):
                lists.pop((owner, list_id), None)
            case body:
                pairs |= ends_of_pair(user, body)
    ends: list[EventBody] = [end for end in pairs.values() if end is not None]
    ends += [end for (reposter, post), end in reposts.items() if reposter == user or post in posts]
    ends += [
        PostDeleted(user, post, "", body.reply_to, body.root, body.repost_of, body.listed)
        for post, body in posts.items()
    ]
    ends += [ListDeleted(user, list_id) for owner, list_id in sorted(lists) if owner == user]
    ends += [
        ListChanged(owner, list_id, removed=(user,))
        for (owner, list_id), is_in in lists.items()
        if owner != user and is_in
    ]
    return ends


def ends_of_pair(user: int, body: EventBody) -> dict[tuple[str, int, int | str], EventBody | None]:
    """Return a pair with the user that an event begins or ends, as a dict with one entry.

    The value is the event that ends the pair, or None if the pair ends with this event. The dict is empty for other
    events.
    """
    for each in PAIRS.pair_sets:
        if isinstance(body, each.begun | each.ended):
            owner, member = each.pair_of(body)
            if user in (owner, value_of(member)):
                is_begun = isinstance(body, each.begun)
                return {(each.noun, owner, member): each.body_of(owner, member, begins=False) if is_begun else None}
    return {}
