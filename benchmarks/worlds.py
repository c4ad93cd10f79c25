"""Large worlds: scripts in the store write the keys directly, in the form that `graph/keys.py` defines.

The caller checks a sample of the world through the public interface of the graph.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from itertools import islice
from typing import Any

from graph import Graph, keys
from graph.model import number_at
from graph.paging import Window

STEP = 1 << 12  # from the first number of a millisecond to that of the next one
FIRST_AUTHOR = number_at(datetime(2021, 1, 1, tzinfo=UTC))
FIRST_LONER = number_at(datetime(2021, 6, 1, tzinfo=UTC))
FIRST_VIEWER = number_at(datetime(2022, 1, 1, tzinfo=UTC))
FIRST_FOLLOW = number_at(datetime(2023, 1, 1, tzinfo=UTC))
FIRST_POST = number_at(datetime(2024, 1, 1, tzinfo=UTC))
LIFETIME = timedelta(days=7)
WORK_PER_CALL = 20_000
TEXT = "Post %s tells, in about as many words as people write, what somebody saw on the way to the market today."
PAGE = 30


@cache
def source(name: str) -> str:
    """Return the source of one of the scripts that build worlds."""
    return resources.files("benchmarks.scripts").joinpath(f"{name}.lua").read_text("utf-8")


def run(client: Any, name: str, *arguments: str | int) -> int:
    """Run a script. The scripts build key names, which only a single server allows."""
    return int(client.eval(source(name), 0, *arguments) or 0)


def pattern(key: str) -> str:
    """Return the format string of a key, given the key for the id 0."""
    return key.replace("0", "%s")


FOLLOWING, HOME, POSTS, POST = (pattern(key(0)) for key in (keys.following, keys.home, keys.posts, keys.post))


def parts(count: int, each: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each part of a range of `count` numbers. A part has at most `each` numbers."""
    for start in range(0, count, each):
        yield start, min(each, count - start)


@dataclass(frozen=True, slots=True)
class Authors:
    """Authors with equal numbers of posts. They publish in turn, one post per second, so all ids can be computed."""

    count: int
    posts_each: int
    first: int = FIRST_AUTHOR
    first_post: int = FIRST_POST
    step: int = 1000 * STEP

    def id(self, index: int) -> int:
        """Return an author's id."""
        return self.first + index * STEP

    def newest(self, indexes: Sequence[int], count: int, skip: int = 0) -> list[int]:
        """Return the newest posts of some authors, newest first, after skipping some."""
        turns = (
            self.first_post + (nth * self.count + index) * self.step
            for nth in range(self.posts_each - 1, -1, -1)
            for index in sorted(indexes, reverse=True)
        )
        return list(islice(turns, skip, skip + count))

    def build(self, client: Any) -> None:
        """Write the authors and their posts."""
        write_users(client, [self.id(index) for index in range(self.count)])
        for start, some in parts(self.count, max(1, WORK_PER_CALL // max(1, self.posts_each))):
            places = (self.first, self.count, start, some, self.posts_each, self.first_post, self.step)
            run(client, "write_posts", POSTS, POST, *places, TEXT)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Viewers who follow 20 authors each, with home caches. There are as many kinds of viewers as authors."""

    viewers: int
    cached: int
    authors: Authors
    following: int = 20

    def viewer(self, index: int) -> int:
        """Return a viewer's id."""
        return FIRST_VIEWER + index * STEP

    def followed(self, index: int) -> list[int]:
        """Return the indices of the authors whom a viewer follows."""
        return [(index + place * 7) % self.authors.count for place in range(self.following)]

    def page(self, index: int) -> list[int]:
        """Return the expected posts of the first page of a viewer's home timeline."""
        return self.authors.newest(self.followed(index), PAGE)

    def _kind(self, index: int) -> dict[str, list[str]]:
        """Return the followees and the cache of one kind of viewer, as arguments for ZADD."""
        followed = self.followed(index)
        follows = {self.authors.id(author): FIRST_FOLLOW + place * STEP for place, author in enumerate(followed)}
        newest = self.authors.newest(followed, self.cached + 1)
        floor = newest[self.cached] if len(newest) > self.cached else 0
        home = [str(floor), "f", *(str(post) for post in newest[: self.cached] for _ in range(2))]
        following = [str(word) for author, number in follows.items() for word in (number, author)]
        return {"following": following, "home": home if self.cached else []}

    def build(self, client: Any) -> None:
        """Write the viewers. The authors may be written before or after."""
        kinds = json.dumps([self._kind(index) for index in range(self.authors.count)])
        each = max(1, WORK_PER_CALL * 20 // (20 + self.cached))
        for start, some in parts(self.viewers, each):
            run(client, "gather_crowd", FOLLOWING, HOME, FIRST_VIEWER, start, some, seconds(LIFETIME), kinds)

    def follow(self, client: Any, author: int, start: int, count: int) -> None:
        """Let a range of the viewers follow an author without posts."""
        stride = next(number for number in range(int(count * 0.618) | 1, 4 * count + 4) if math.gcd(number, count) == 1)
        for begin, some in parts(count, WORK_PER_CALL):
            places = (FIRST_VIEWER, start, count, begin, some, FIRST_FOLLOW + 1000 * STEP, stride)
            run(client, "follow_author", FOLLOWING, keys.followers(author), author, *places)

    def served(self, client: Any, post: int, start: int, count: int) -> int:
        """Return the number of viewers in a range whose cache holds a post."""
        return sum(
            run(client, "count_served", HOME, FIRST_VIEWER, start + begin, some, post)
            for begin, some in parts(count, WORK_PER_CALL)
        )

    def hibernate(self, client: Any) -> None:
        """Delete all caches."""
        for begin, some in parts(self.viewers, WORK_PER_CALL):
            run(client, "count_served", HOME, FIRST_VIEWER, begin, some, "")

    async def check(self, graph: Graph, indexes: Sequence[int]) -> None:
        """Check the first page of a sample of the viewers."""
        for index in indexes:
            page = await graph.timelines.home(self.viewer(index), Window(PAGE, forward=True))
            assert [post.id for post in page.items] == self.page(index), f"viewer {index} has a wrong page"


def seconds(time: timedelta) -> int:
    """Return a duration in whole seconds."""
    return int(time.total_seconds())


def write_users(client: Any, ids: Sequence[int]) -> None:
    """Write users' profiles."""
    for start, some in parts(len(ids), WORK_PER_CALL):
        with client.pipeline(transaction=False) as pipeline:
            for user in ids[start : start + some]:
                values = {"id": user, "login": f"u{user}", "name": f"U {user}", "bio": ""}
                stamps = {f"{field}:at": user for field in values}
                pipeline.hset(keys.user(user), mapping=values | stamps)
            pipeline.execute()
