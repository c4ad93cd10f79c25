"""Generated conversations: replies with answers, quotes, reposts and likes, by followers of the authors."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

from graph.log.events import Event, EventBody, Followed, Liked, PostPublished, Reposted
from graph.posts.publication import as_reply
from graph.records import published_post
from server.demo.characters import Character
from server.demo.phrases import fill
from server.demo.posts import SILENCE, Resident, write_text
from server.demo.schedule import Lane, Planned, by_time, numbered

REPLIED, ANSWERED, QUOTED, REPOSTED, LIKED = 0.12, 0.4, 0.02, 0.05, 0.5
"""The shares of posts that have replies, of replies that have an answer, of posts that have a quote, of posts that have
reposts, and of posts and replies that have likes."""

MOST_REPLIES, MOST_REPOSTS = 4, 3


class Conversations:
    """Generates the replies, quotes, reposts and likes of users. Pass only posts that are not deleted."""

    def __init__(
        self, base: datetime, residents: Sequence[Resident], follows: Iterable[Planned], random: Random
    ) -> None:
        self._base = base
        self._random = random
        self._who: Mapping[int, Character] = {resident.id: resident.who for resident in residents}
        self._fans: defaultdict[int, list[int]] = defaultdict(list)
        for _, body in follows:
            if isinstance(body, Followed):
                self._fans[body.followee].append(body.follower)

    def events(self, posts: Sequence[Event]) -> list[Event]:
        """Return all conversations about these posts, as events."""
        replies = self._made(Lane.REPLYING, posts, REPLIED, MOST_REPLIES, self._reply)
        answers = self._made(Lane.ANSWERING, replies, ANSWERED, 1, self._answer)
        quotes = self._made(Lane.QUOTING, posts, QUOTED, 1, self._quote)
        reposts = self._made(Lane.REPOSTING, posts, REPOSTED, MOST_REPOSTS, self._repost)
        likes = self._made(Lane.LIKING, [*posts, *replies], LIKED, len(self._who), self._like)
        return [*replies, *answers, *quotes, *reposts, *likes]

    def _made(
        self,
        lane: Lane,
        posts: Sequence[Event],
        share: float,
        limit: int,
        make: Callable[[int, Event, PostPublished], EventBody],
    ) -> list[Event]:
        """Return reactions by the authors' followers to a share of the posts. `make` builds each event."""
        planned: list[Planned] = []
        for event in posts:
            if isinstance(event.body, PostPublished) and self._random.random() < share:
                fans = self._some(self._fans[event.body.author], limit)
                planned += [(self._later(event.at, lane), make(fan, event, event.body)) for fan in fans]
        return numbered(by_time(planned), lane)

    def _some(self, users: Sequence[int], limit: int) -> Iterator[int]:
        """Yield a random number of different users: usually few, sometimes many."""
        count = min(len(users), limit, int(self._random.paretovariate(1.4)))
        yield from self._random.sample(users, count)

    def _later(self, time: datetime, lane: Lane) -> datetime:
        """Return a time some minutes or hours after a post. Later lanes have later limits: answers follow replies."""
        latest = self._base - SILENCE * (len(Lane) - lane) / (2 * len(Lane))
        return min(time + timedelta(minutes=self._random.paretovariate(0.7)), latest)

    def _reply(self, fan: int, event: Event, body: PostPublished) -> PostPublished:
        return as_reply(PostPublished(fan, self._phrase(fan)), published_post(event.number, body))

    def _answer(self, fan: int, event: Event, body: PostPublished) -> PostPublished:
        """Return an answer to a reply, by the author of the original post, or by `fan` if that author replied."""
        asked = body.reply_to_author
        author = asked if asked is not None and asked != body.author else fan
        return as_reply(PostPublished(author, self._phrase(author)), published_post(event.number, body))

    def _quote(self, fan: int, event: Event, body: PostPublished) -> PostPublished:
        text = write_text(self._who[fan], (), self._random)
        return PostPublished(fan, text, repost_of=event.number, repost_of_author=body.author)

    def _repost(self, fan: int, event: Event, body: PostPublished) -> Reposted:
        return Reposted(fan, event.number, body.author)

    def _like(self, fan: int, event: Event, body: PostPublished) -> Liked:
        return Liked(fan, event.number, body.author)

    def _phrase(self, user: int) -> str:
        voice = self._who[user].voices[0]
        return fill(self._random.choice(voice.replies), voice.slots, self._random)
