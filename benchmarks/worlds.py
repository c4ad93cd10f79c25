"""Worlds too big to be written post by post: the store itself generates them, in the exact form of `graph/keys.py`.

Whoever builds one checks a sample of it through the graph's own interface.
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

STEP = 1 << 12  # from one millisecond's first number to the next one's
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
    """Read one of the scripts that build worlds."""
    return resources.files("benchmarks.scripts").joinpath(f"{name}.lua").read_text("utf-8")


def run(client: Any, name: str, *arguments: str | int) -> int:
    """Run a script; they name their keys themselves, which a single server allows."""
    return int(client.eval(source(name), 0, *arguments) or 0)


def pattern(key: str) -> str:
    """Make the format of a key from the key of 0."""
    return key.replace("0", "%s")


FOLLOWING, HOME, POSTS, POST = (pattern(key(0)) for key in (keys.following, keys.home, keys.posts, keys.post))


def parts(count: int, each: int) -> Iterator[tuple[int, int]]:
    """Cut a range into parts: the first of each, and how many."""
    for start in range(0, count, each):
        yield start, min(each, count - start)


@dataclass(frozen=True, slots=True)
class Authors:
    """Authors with as many posts each, who take turns to publish, one post a second: so all is known by arithmetic."""

    count: int
    posts_each: int
    first: int = FIRST_AUTHOR
    first_post: int = FIRST_POST
    step: int = 1000 * STEP

    def id(self, index: int) -> int:
        """Tell an author's id."""
        return self.first + index * STEP

    def newest(self, indexes: Sequence[int], count: int, skip: int = 0) -> list[int]:
        """Tell the newest posts of some authors, newest first, after skipping some."""
        turns = (
            self.first_post + (nth * self.count + index) * self.step
            for nth in range(self.posts_each - 1, -1, -1)
            for index in sorted(indexes, reverse=True)
        )
        return list(islice(turns, skip, skip + count))

    def build(self, client: Any) -> None:
        """Write the authors and their posts."""
        write_people(client, [self.id(index) for index in range(self.count)])
        for start, some in parts(self.count, max(1, WORK_PER_CALL // max(1, self.posts_each))):
            places = (self.first, self.count, start, some, self.posts_each, self.first_post, self.step)
            run(client, "write_posts", POSTS, POST, *places, TEXT)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Viewers who follow 20 authors each, with settled caches of their newest posts, in as many kinds as authors."""

    viewers: int
    cached: int
    authors: Authors
    following: int = 20

    def viewer(self, index: int) -> int:
        """Tell a viewer's id."""
        return FIRST_VIEWER + index * STEP

    def followed(self, index: int) -> list[int]:
        """Tell which authors, by index, a viewer follows."""
        return [(index + place * 7) % self.authors.count for place in range(self.following)]

    def page(self, index: int) -> list[int]:
        """Tell the posts that the first page of a viewer's home timeline must show."""
        return self.authors.newest(self.followed(index), PAGE)

    def _kind(self, index: int) -> dict[str, list[str]]:
        """Give whom a kind of viewer follows and what is cached, as words of ZADD: score, member."""
        followed = self.followed(index)
        follows = {self.authors.id(author): FIRST_FOLLOW + place * STEP for place, author in enumerate(followed)}
        newest = self.authors.newest(followed, self.cached + 1)
        floor = newest[self.cached] if len(newest) > self.cached else 0
        home = [str(floor), "f", *(str(post) for post in newest[: self.cached] for _ in range(2))]
        following = [str(word) for author, number in follows.items() for word in (number, author)]
        return {"following": following, "home": home if self.cached else []}

    def build(self, client: Any) -> None:
        """Write the viewers. The authors have to be there, or to come."""
        kinds = json.dumps([self._kind(index) for index in range(self.authors.count)])
        each = max(1, WORK_PER_CALL * 20 // (20 + self.cached))
        for start, some in parts(self.viewers, each):
            run(client, "gather_crowd", FOLLOWING, HOME, FIRST_VIEWER, start, some, seconds(LIFETIME), kinds)

    def follow(self, client: Any, author: int, start: int, count: int) -> None:
        """Let a range of the viewers follow an author, who has no posts yet."""
        stride = next(number for number in range(int(count * 0.618) | 1, 4 * count + 4) if math.gcd(number, count) == 1)
        for begin, some in parts(count, WORK_PER_CALL):
            places = (FIRST_VIEWER, start, count, begin, some, FIRST_FOLLOW + 1000 * STEP, stride)
            run(client, "follow_author", FOLLOWING, keys.followers(author), author, *places)

    def served(self, client: Any, post: int, start: int, count: int) -> int:
        """Count the viewers of a range whose cache holds a post."""
        return sum(
            run(client, "count_served", HOME, FIRST_VIEWER, start + begin, some, post)
            for begin, some in parts(count, WORK_PER_CALL)
        )

    def hibernate(self, client: Any) -> None:
        """Forget all caches."""
        for begin, some in parts(self.viewers, WORK_PER_CALL):
            run(client, "count_served", HOME, FIRST_VIEWER, begin, some, "")

    async def check(self, graph: Graph, indexes: Sequence[int]) -> None:
        """Assert that a sample of the viewers sees the page it must."""
        for index in indexes:
            page = await graph.timelines.home(self.viewer(index), Window(PAGE, forward=True))
            assert [post.id for post in page.items] == self.page(index), f"viewer {index} sees another world"


def seconds(time: timedelta) -> int:
    """Give a duration in whole seconds."""
    return int(time.total_seconds())


def write_people(client: Any, ids: Sequence[int]) -> None:
    """Write the profiles of people."""
    for start, some in parts(len(ids), WORK_PER_CALL):
        with client.pipeline(transaction=False) as pipeline:
            for user in ids[start : start + some]:
                values = {"id": user, "login": f"u{user}", "name": f"U {user}", "bio": ""}
                stamps = {f"{field}:at": user for field in values}
                pipeline.hset(keys.user(user), mapping=values | stamps)
            pipeline.execute()
