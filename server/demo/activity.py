"""The activity of the demo's users while it runs: they publish, reply, like, repost, delete posts and follow.

Most of the activity is visible to users whose home timelines are being watched.

A visitor who opens a live stream sees the first event within ten seconds. Without any stream, there is an event per
minute, so that a demo that runs for days does not fill up.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

from graph import Graph
from graph.errors import GraphError, Rejected
from graph.model import FollowOutcome, Location
from graph.paging import Window
from graph.tasks import end
from graph.visibility.views import SYSTEM
from server.demo.characters import Character
from server.demo.people import PEOPLE, SEED, profiles
from server.demo.phrases import fill
from server.demo.posts import PLATFORM_WEIGHTS, PLATFORMS, place_near, write_text

LOOK_SECONDS = 0.5
BUSY_SECONDS = (2.0, 5.0)
IDLE_SECONDS = 60.0
FOLLOWS, CONVERSATIONS, DELETIONS = 0.2, 0.35, 0.08  # of all events
FOLLOWS_WITHOUT_HOME = 0.5  # while only other streams are live: one of them may be waiting for new followers
REMEMBERED = 20
RECENT = 10
LIKES, REPOSTS = 0.45, 0.15  # of conversations; the others are replies
TO_THE_WATCHER = 0.5

logger = logging.getLogger("fanline.demo")


@asynccontextmanager
async def activity(graph: Graph) -> AsyncIterator[None]:
    """Act as users of the demo for the duration of the block."""
    task = asyncio.create_task(_act(graph, Random()))  # noqa: S311 - nothing secret
    try:
        yield
    finally:
        await end([task])


async def _act(graph: Graph, random: Random) -> None:
    crowd: Crowd | None = None
    last = time.monotonic()
    pause = random.uniform(*BUSY_SECONDS)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        if time.monotonic() - last < (pause if len(graph.feed) else IDLE_SECONDS):
            continue
        last, pause = time.monotonic(), random.uniform(*BUSY_SECONDS)
        try:
            crowd = crowd or await Crowd.gather(graph, random)
            await crowd.act()
        except GraphError as error:  # such as a store that is full or restarts
            logger.warning("The demo's users have paused: %s", error)


class Crowd:
    """The users of the demo. All of them act, except the watchers.

    The watchers are the users whose home timelines are being watched or, if there are none, were watched last. Until
    a home timeline has been watched, the first user of the demo is the only watcher.
    """

    def __init__(self, graph: Graph, characters: Mapping[int, Character], random: Random) -> None:
        self._graph = graph
        self._characters = characters
        self._everybody = tuple(characters)
        self._watchers: Sequence[int] = self._everybody[:1]
        self._random = random
        self._published: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    @classmethod
    async def gather(cls, graph: Graph, random: Random) -> "Crowd":
        """Return a crowd of the demo world's users who exist in the store. One round trip."""
        known = list(profiles(PEOPLE, SEED))
        found = await graph.users.ids_of_logins([person.login for person, _ in known])
        ids = zip(found, known, strict=True)
        return cls(graph, {id_: character for id_, (_, character) in ids if id_ is not None}, random)

    async def act(self) -> None:
        """Do something as one of the users. Do nothing if there are no users, or all of them are watchers."""
        watching = self._graph.feed.home_viewers()
        self._watchers = watching or self._watchers
        actors = [user for user in self._everybody if user not in self._watchers]
        if not actors:
            return
        chance = self._random.random()
        if chance < (FOLLOWS if watching else FOLLOWS_WITHOUT_HOME) and await self._follow(actors):
            return
        if chance > 1 - DELETIONS and self._published:
            await self._graph.posts.delete(*self._published.popleft())
        elif chance < 1 - DELETIONS - CONVERSATIONS or not await self._converse(await self._author(actors)):
            await self._publish(await self._author(actors))

    async def _follow(self, actors: Sequence[int]) -> bool:
        """Make a random user follow a watcher. Return False if the user already does, or may not follow the watcher."""
        follower, followee = self._random.choice(actors), self._random.choice(self._watchers)
        [outcome] = await self._graph.follows.follow(follower, [followee])
        return outcome is FollowOutcome.FOLLOWED

    async def _author(self, actors: Sequence[int]) -> int:
        """Return a user whom one of the watchers follows, or any user if there is none."""
        followed = await self._graph.follows.followed_by(self._random.choice(self._watchers))
        return self._random.choice([user for user in actors if user in followed] or actors)

    async def _converse(self, actor: int) -> bool:
        """Like, repost or reply to a recent post by a watcher or in a watcher's home timeline.

        Return False if there is no such post, or if the user may not react to it.
        """
        watcher, window = self._random.choice(self._watchers), Window(RECENT, forward=True)
        if self._random.random() < TO_THE_WATCHER:
            [page] = await self._graph.timelines.user(SYSTEM, [watcher], window)
        else:
            page = await self._graph.timelines.home(watcher, window)
        posts = [post.id for post in page.items if post.author != actor and not post.is_plain_repost]
        if not posts:
            return False
        post = self._random.choice(posts)
        try:
            await self._answer(actor, post)
        except Rejected:  # the visitor has blocked this user, or the post was deleted
            return False
        return True

    async def _answer(self, actor: int, post: int) -> None:
        chance, random = self._random.random(), self._random
        if chance < LIKES:
            await self._graph.likes.like(actor, post)
        elif chance < LIKES + REPOSTS:
            await self._graph.reposts.repost(self._graph.visibility.of(actor), actor, post)
        else:
            voice = self._characters[actor].voices[0]
            text = fill(random.choice(voice.replies), voice.slots, random)
            published = await self._graph.posts.publish(actor, text, reply_to=post)
            self._published.append((actor, published.id))

    async def _publish(self, author: int) -> None:
        who, random = self._characters[author], self._random
        location = Location(*place_near(who, random)) if random.random() < 0.12 else None
        [platform] = random.choices(PLATFORMS, PLATFORM_WEIGHTS)
        text = write_text(who, (), random)
        post = await self._graph.posts.publish(author, text, platform=platform, location=location)
        self._published.append((author, post.id))
