"""The events that an eraser appends for a user, from the events of a history."""

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
from graph.log.pair_events import Muted, Unmuted


def ends_of(user: int, events: Sequence[Event]) -> list[EventBody]:
    """Return the events that end everything of a user, and the plain reposts of the user's posts."""
    pairs: dict[tuple[str, int, int], EventBody | None] = {}
    posts: dict[int, PostPublished] = {}
    lists: set[int] = set()
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
            case Muted(muter, muted) if user in (muter, muted):
                pairs["mute", muter, muted] = Unmuted(muter, muted)
            case Unmuted(muter, muted):
                pairs["mute", muter, muted] = None
            case Reposted(reposter, post, author):
                reposts[reposter, post] = Unreposted(reposter, post, event.number, author)
            case Unreposted(reposter, post):
                reposts.pop((reposter, post), None)
            case PostPublished(author) if user == author:
                posts[event.number] = event.body
            case PostDeleted(post=post):
                posts.pop(post, None)
            case ListCreated(owner) if user == owner:
                lists.add(event.number)
            case ListChanged(owner, list_id) if user == owner:
                lists.add(list_id)
            case ListDeleted(list_id=list_id):
                lists.discard(list_id)
            case _:
                pass
    ends: list[EventBody] = [end for end in pairs.values() if end is not None]
    ends += [end for (reposter, post), end in reposts.items() if reposter == user or post in posts]
    ends += [
        PostDeleted(user, post, "", body.reply_to, body.root, body.repost_of, body.listed)
        for post, body in posts.items()
    ]
    return [*ends, *(ListDeleted(user, list_id) for list_id in sorted(lists))]
