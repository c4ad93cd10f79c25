"""Sources of large worlds: generated or from files, validated completely before anything is written."""

import gzip
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from graph import Graph
from graph.log.events import Followed, PostPublished, UserCreated
from graph.model import number_at, time_of
from server.demo.world import World
from server.seeding.load import SeedRefused, load
from server.seeding.sources import EdgeList, Texts, seed_source
from tests.support.worlds import BASE, as_it_is, as_it_should_be

DATA = Path(__file__).parents[4] / "shared" / "data"
EDGES = "# tiny 6 5 2\n0 1\n0 2\n1 2\n4 5\n2 4\n"
FOLLOWS = {(0, 1), (0, 2), (1, 2), (4, 5), (2, 4)}


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """Write a small edge list and return its path."""
    path = tmp_path / "edges.txt"
    path.write_text(EDGES)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Return a function that writes a file and returns its path."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "file.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


class Options(TypedDict, total=False):
    """The options of `seed_source`."""

    users: int
    posts: int
    following: int
    follows: Path
    texts: Path


def world_of(**options: Unpack[Options]) -> World:
    """Return the world of a source."""
    return World(tuple(seed_source(**options).events(BASE)))


def test_pairs_are_read_as_follows(edges: Path) -> None:
    """Each pair is one follow, and its numbers become logins."""
    world = world_of(follows=edges)
    numbers = {id: int(login.removeprefix("p")) for login, id in world.people().items()}
    assert {(numbers[a], numbers[b]) for a, b in world.follows()} == FOLLOWS
    assert sorted(numbers.values()) == list(range(6))


def test_gzipped_files_are_read_like_plain_ones(edges: Path, tmp_path: Path) -> None:
    packed = tmp_path / "edges.txt.gz"
    packed.write_bytes(gzip.compress(edges.read_bytes()))
    assert world_of(follows=packed) == world_of(follows=edges)


def test_texts_are_posted_in_order_and_repeated(write: Callable[[str], Path]) -> None:
    """Lines without text are skipped; the others are trimmed as by the API."""
    world = world_of(users=3, posts=5, texts=write("one\n\n  二  \nthree 🎉\n"))
    assert [post.text for post in world.posts().values()] == ["one", "二", "three 🎉", "one", "二"]


def test_a_generated_world_has_the_requested_sizes() -> None:
    world = world_of(users=400, posts=300, following=10)
    follows = world.follows()
    assert len(world.people()) == 400
    assert len(world.posts()) == 300
    assert 6 * 400 < len(follows) < 14 * 400
    followers = Counter(followee for _, followee in follows)
    assert max(followers.values()) > 8 * len(follows) / 400
    assert all(follower != followee for follower, followee in follows)


@pytest.mark.parametrize("options", [{"users": 1, "posts": 3}, {"users": 2, "posts": 0, "following": 0}])
def test_the_smallest_worlds(options: Options) -> None:
    world = world_of(**options)
    assert len(world.people()) == options["users"]
    assert len(world.posts()) == options["posts"]


def test_every_event_has_its_own_millisecond_before_the_base_time() -> None:
    numbers = [event.number for event in world_of(users=500, posts=700, following=30).events]
    assert all(before < after for before, after in pairwise(numbers))
    assert all(number == number_at(time_of(number)) for number in numbers)
    assert time_of(numbers[-1]) < BASE


def test_events_are_counted_without_creating_them(edges: Path) -> None:
    """Users, posts, and follows from the file or generated are counted."""
    for source in (seed_source(users=40, posts=30, following=5), seed_source(posts=7, follows=edges)):
        assert source.count(BASE) == len([*source.events(BASE)])


def test_a_source_is_a_stream() -> None:
    """The first events of a world with ten million users are available immediately."""
    events = seed_source(users=10_000_000, posts=10).events(datetime(2025, 1, 1, tzinfo=UTC))
    assert all(isinstance(event.body, UserCreated) for event in islice(events, 5))


async def test_a_seeded_store_holds_the_file(graph: Graph, edges: Path) -> None:
    """Users, lists, relationships and timelines equal plain sets. The limit on follows does not apply."""
    source = seed_source(follows=edges, posts=40)
    await load(graph, source, now=BASE)
    expected = as_it_should_be(World(tuple(source.events(BASE))))
    assert await as_it_is(graph, list(expected.users)) == expected


async def test_another_file_is_another_seeding(graph: Graph, write: Callable[[str], Path]) -> None:
    """Files are compared by content, not by name."""
    await load(graph, seed_source(follows=write(EDGES), posts=4), now=BASE)
    with pytest.raises(SeedRefused, match=r"holds 6 users, 5 follows and 4 posts from file\.txt; only"):
        await load(graph, seed_source(follows=write(EDGES.replace("4 5", "0 3")), posts=4))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "line 1: must be a header"),
        ("0 1\n", "line 1: must be a header"),
        ("# name many pairs\n", "line 1: must be a header"),
        ("# tiny 3 2\n0 1\n0 3\n", "line 3: must be two different numbers below 3"),
        ("# tiny 3 2\n1 1\n", "line 2: must be two different numbers"),
        ("# tiny 3 2\n0 1 2\n", "line 2: must be two different numbers"),
        ("# tiny 3 2\n0 -1\n", "line 2: must be two different numbers"),
        ("# tiny 3 2\n0 " + "9" * 5000, "line 2: must be two different numbers"),
        ("# tiny 3 2\n\n", "line 2: must be two different numbers"),
        (b"# tiny 3 2\n0 \xff\n", "cannot be read: .*utf-8"),
    ],
)
def test_a_bad_edge_list_is_refused(write: Callable[[str | bytes], Path], content: str | bytes, complaint: str) -> None:
    """The message names the file and the line."""
    with pytest.raises(SeedRefused, match=rf"file\.txt.*{complaint}"):
        seed_source(follows=write(content))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("fine\n" + "x" * 1001 + "\n", "line 2: .* 1001 characters; the limit is 1000"),
        ("\n  \n", "contains no text"),
        ("bell \x07\n", "line 1: .* control characters"),
        (b"\xff\n", "cannot be read: .*utf-8"),
    ],
)
def test_a_bad_file_of_texts_is_refused(
    write: Callable[[str | bytes], Path], content: str | bytes, complaint: str
) -> None:
    with pytest.raises(SeedRefused, match=rf"file\.txt.*{complaint}"):
        seed_source(users=3, texts=write(content))


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(EDGES.encode())[:-8])
    with pytest.raises(SeedRefused, match="cannot be read"):
        seed_source(follows=path)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"users": 0}, "--users must be from 1 "),
        ({"posts": -1}, "--posts must be from 0 "),
        ({"following": -1}, "--following must be from 0 "),
        ({"users": 10**12}, "--users must be from 1 "),
        ({"follows": Path("nowhere.txt")}, r"nowhere\.txt cannot be read"),
        ({"follows": Path("nowhere.txt"), "users": 5}, "cannot be combined with --follows"),
    ],
)
def test_bad_options_are_refused(options: Options, complaint: str) -> None:
    with pytest.raises(SeedRefused, match=complaint):
        seed_source(**options)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the real graph and texts are not in {DATA}")
def test_the_real_files_can_be_seeded() -> None:
    edges = EdgeList.check(DATA / "soc-epinions1.txt.gz")
    assert (edges.people, edges.pairs) == (75_877, 405_739)
    assert Texts.check(DATA / "weibo-texts.txt.gz").count == 2400


@pytest.mark.skipif(not DATA.is_dir(), reason=f"the real graph and texts are not in {DATA}")
def test_real_texts_are_posted_unchanged() -> None:
    """Chinese, emoji, reposts and links are not changed."""
    with gzip.open(DATA / "weibo-texts.txt.gz", "rt", encoding="utf-8") as lines:
        expected = [line.strip() for line in lines][:300]
    events = seed_source(users=10, posts=300, following=0, texts=DATA / "weibo-texts.txt.gz").events(BASE)
    assert [event.body.text for event in events if isinstance(event.body, PostPublished)] == expected


def test_follows_name_users_who_have_joined() -> None:
    world = world_of(users=50, posts=10)
    users = set(world.people().values())
    for event in world.events:
        if isinstance(event.body, Followed):
            assert {event.body.follower, event.body.followee} <= users
