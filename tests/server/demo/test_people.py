"""The demo world: reproducible, valid for the API, in order of time, and varied."""

import re
import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from graph.log.events import Event, Followed, Liked, PostDeleted, PostPublished, Reposted, Unfollowed, UserCreated
from graph.model import Location, Relationship, RelationshipState, number_at, time_of
from graph.text.validation import Check
from server.demo.people import PASSWORD, SEVEN, demo_world
from server.demo.world import World

BASE = datetime(2025, 6, 1, 9, 41, 12, 345678, tzinfo=UTC)


@pytest.fixture(scope="module")
def world() -> World:
    """Return the demo's world."""
    return demo_world(BASE)


def test_the_same_seed_and_base_time_give_the_same_world(world: World) -> None:
    assert demo_world(BASE) == world
    assert demo_world(BASE, seed=8).events != world.events


def test_another_base_time_gives_the_same_users_and_texts(world: World) -> None:
    later = demo_world(BASE + timedelta(days=100))
    assert set(later.people()) == set(world.people())
    assert sorted(post.text for post in texts_of(later)) == sorted(post.text for post in texts_of(world))


def test_a_smaller_world_has_a_subset_of_the_users(world: World) -> None:
    smaller = demo_world(BASE, people=20, posts=50)
    assert len(smaller.people()) == 20
    assert set(smaller.people()) < set(world.people())
    assert {role.person.login for role in SEVEN} <= set(smaller.people())


def test_fewer_than_seven_users_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 7 users"):
        demo_world(BASE, people=6)


def test_every_event_has_its_own_millisecond_before_the_base_time(world: World) -> None:
    """The log can therefore assign each event the number that the world has for it."""
    numbers = [event.number for event in world.events]
    assert all(before < after for before, after in pairwise(numbers))
    assert all(number == number_at(time_of(number)) for number in numbers)
    assert time_of(numbers[-1]) < BASE


def test_events_come_after_the_events_that_they_need(world: World) -> None:
    """Users act after they join. Only existing posts are deleted, by their author, and only existing follows end."""
    users: set[int] = set()
    posts: dict[int, int] = {}
    follows: set[tuple[int, int]] = set()
    for event in world.events:
        match event.body:
            case UserCreated():
                users.add(event.number)
            case Followed(follower, followee):
                assert {follower, followee} <= users
                assert follower != followee
                assert (follower, followee) not in follows
                follows.add((follower, followee))
            case Unfollowed(follower, followee):
                follows.remove((follower, followee))
            case PostPublished(author=author):
                assert author in users
                assert {body for body in (event.body.reply_to, event.body.repost_of) if body} <= posts.keys()
                posts[event.number] = author
            case Reposted(user, post, author) | Liked(user, post, author):
                assert user in users
                assert posts[post] == author
            case PostDeleted(author, post):
                assert posts.pop(post) == author


def test_all_values_are_valid_for_the_api(world: World) -> None:
    """The API would refuse, trim or normalise none of the values."""
    for event in world.events:
        check_values(event)
    check = Check()
    check.password(PASSWORD)
    check.done()


def check_values(event: Event) -> None:
    check = Check()
    match event.body:
        case UserCreated(login, name, _, bio):
            assert (check.login(login), check.name(name), check.bio(bio)) == (login, name, bio)
        case PostPublished(_, text, platform, latitude, longitude):
            assert (check.text(text), check.platform(platform)) == (text, platform)
            if latitude is not None and longitude is not None:
                check.location(Location(latitude, longitude))
    check.done()


def test_only_the_seven_have_a_password(world: World) -> None:
    assert world.passwords == dict.fromkeys(["alice", "bob", "carol", "dave", "erin", "wei", "xiaoming"], PASSWORD)
    names = {event.body.login: event.body.name for event in world.events if isinstance(event.body, UserCreated)}
    assert (names["wei"], names["xiaoming"]) == ("伟", "小明")


@pytest.mark.parametrize("people", [7, 20, 300])
def test_bobs_newest_followers_show_alice_every_state(people: int) -> None:
    """The README's second query shows YOU, MUTUAL, FOLLOWING, FOLLOWED_BY and STRANGER, in this order."""
    world = demo_world(BASE, people=people, posts=0)
    ids, follows = world.people(), world.follows()
    alice, bob = ids["alice"], ids["bob"]
    newest = sorted((number, follower) for (follower, followee), number in follows.items() if followee == bob)[::-1]
    states = [
        Relationship(alice, other, follows.get((alice, other)), follows.get((other, alice))).state
        for _, other in newest[:5]
    ]
    assert states == [
        RelationshipState.YOU,
        RelationshipState.MUTUAL,
        RelationshipState.FOLLOWING,
        RelationshipState.FOLLOWED_BY,
        RelationshipState.STRANGER,
    ]


def test_few_users_have_very_many_followers(world: World) -> None:
    """The numbers of followers have a long tail, and nearly all users follow someone."""
    followers = Counter(followee for _, followee in world.follows())
    following = Counter(follower for follower, _ in world.follows())
    most = max(followers.values())
    assert most > 10 * statistics.median(followers[id] for id in world.people().values())
    assert most > len(world.people()) / 3
    assert sum(following[id] > 0 for id in world.people().values()) > 290


def test_home_timelines_of_the_seven_fill_many_pages(world: World) -> None:
    for role in SEVEN:
        assert len(world.home(world.people()[role.person.login])) > 150


def test_posts_are_in_two_languages_and_varied(world: World) -> None:
    texts = [post.text for post in texts_of(world) if not post.reply_to]
    chinese = sum(bool(re.search(r"[\u4e00-\u9fff]", text)) for text in texts)
    assert 0.3 < chinese / len(texts) < 0.7
    assert len(set(texts)) > 0.75 * len(texts)
    assert sum("#" in text for text in texts) > 500
    assert sum(post.platform is not None for post in texts_of(world)) > 3000
    assert sum(post.latitude is not None for post in texts_of(world)) > 300


def test_people_talk_to_each_other(world: World) -> None:
    """There are replies and answers, quotes, reposts, mentions and likes, in both languages; many are about alice."""
    alice, posts = world.people()["alice"], world.posts()
    replies = [body for body in posts.values() if body.reply_to]
    assert len(replies) > 1000
    assert sum(body.reply_to != body.root for body in replies) > 100
    assert 0.3 < sum(bool(re.search(r"[\u4e00-\u9fff]", body.text)) for body in replies) / len(replies) < 0.7
    assert sum(bool(body.repost_of) for body in posts.values()) > 50
    assert sum(bool(body.mentions) for body in posts.values()) > 100
    kinds = Counter(type(event.body) for event in world.events)
    assert kinds[Reposted] > 200
    assert kinds[Liked] > 3000
    liked = [event for event in world.events if isinstance(event.body, Liked) and event.body.author == alice]
    assert len(liked) > 50
    assert sum(body.reply_to_author == alice or alice in body.mentions for body in posts.values()) > 10


def test_the_last_day_has_many_posts(world: World) -> None:
    recent = [post for post in world.posts() if time_of(post) > BASE - timedelta(days=1)]
    assert len(recent) > 100


def texts_of(world: World) -> list[PostPublished]:
    return [event.body for event in world.events if isinstance(event.body, PostPublished)]
