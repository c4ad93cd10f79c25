"""The search for users: which users a text finds, in which order, and the cost of a page."""

import unicodedata
from random import Random
from typing import Any

import pytest
from redis.asyncio import Redis

from graph import Graph, keys
from graph.errors import ArchiveUnavailable, BadFilter
from graph.model import MAX_NUMBER
from graph.paging import Window
from graph.search.user_search import UserSearches
from graph.visibility.views import SYSTEM, View
from tests.support.graph_worlds import PASSWORD, archive_log, counted, newest, people

WORDS = ["Ann", "ANNA", "annabel", "Ben", "bea", "Müller", "x_1"]
RUNS = ["王小明", "小明", "王", "明小"]


async def settle(graph: Graph) -> None:
    """Project and archive the log."""
    await graph.worker().drain()
    await archive_log(graph)


async def found(
    searches: UserSearches, text: str, view: View = SYSTEM, *, size: int = 100, forward: bool = True
) -> list[int]:
    """Return the ids of all users whom a text finds, page by page, in the order of the list."""
    ids: list[int] = []
    low, high = 0, MAX_NUMBER + 1
    while True:
        page, profiles = await searches.page(view, text, Window(size, forward, low, high))
        some = [entry.user for entry in page.items]
        numbers = [entry.number for entry in page.items]
        assert numbers == sorted(numbers, reverse=True)
        assert len(some) <= size
        assert set(some) <= profiles.keys()
        ids = ids + some if forward else some + ids
        if not (page.has_next if forward else page.has_previous):
            return ids
        if forward:
            high = page.reached or numbers[-1]
        else:
            low = page.reached or numbers[0]


async def sign_up(graph: Graph, **names: str) -> list[int]:
    """Sign up users with these logins and names, in this order, and archive them."""
    users = [(await graph.users.sign_up(login, PASSWORD, name)).id for login, name in names.items()]
    await settle(graph)
    return users


async def test_users_are_found_by_login_and_name(graph: Graph) -> None:
    """The newest users come first."""
    anna, ben, wang = await sign_up(graph, anna_m="Müller", ben="Anna Smith", wang="王小明 Annabel")
    search = graph.user_searches

    assert await found(search, "ann") == [wang, ben, anna]
    assert await found(search, "anna_") == [anna]
    assert await found(search, "SMITH a") == [ben]
    assert await found(search, "小明") == await found(search, "annab 王") == [wang]
    assert await found(search, "müll") == [anna]
    assert await found(search, "nna") == await found(search, "annabella") == []


async def test_the_user_with_exactly_this_login_comes_first(graph: Graph) -> None:
    """The user appears once, first in either direction, whatever the case and even with a leading @."""
    bob, bobby, other = await sign_up(graph, bob="Bob", bobby="Bobby", other="Bob")

    for text in ("bob", "@BOB", " bob "):
        for size in (1, 2, 3, 5):
            for forward in (True, False):
                assert await found(graph.user_searches, text, size=size, forward=forward) == [bob, other, bobby]
    page, _ = await graph.user_searches.page(SYSTEM, "bob", newest(1))
    assert (page.items[0].number, page.has_next, page.has_previous) == (MAX_NUMBER, True, False)
    assert await found(graph.user_searches, "other") == [other]


async def test_a_new_name_is_found_and_the_old_one_is_not(graph: Graph) -> None:
    """The old name is no longer found: profiles come from the store. The new name is found once it is archived."""
    [anna] = await sign_up(graph, anna="Carol")
    await graph.users.update_profile(anna, name="Dora")

    assert await found(graph.user_searches, "carol") == []
    await settle(graph)
    assert await found(graph.user_searches, "carol") == []
    assert await found(graph.user_searches, "dora") == [anna]


async def test_hidden_users_are_left_out(graph: Graph, raw: Redis) -> None:
    """Users across a block are left out, even with exactly this login. Muted users are found."""
    viewer, bob, bobby, bobo, boba = await sign_up(graph, viewer="V", bob="B", bobby="B", bobo="B", boba="B")
    for key, user in ((keys.blocking, bob), (keys.blockers, bobby), (keys.muting, bobo)):
        await raw.zadd(key(viewer), {str(user): 1})

    assert await found(graph.user_searches, "bob", graph.visibility.of(viewer)) == [boba, bobo]
    assert await found(graph.user_searches, "bob", graph.visibility.of(None)) == [bob, boba, bobo, bobby]


async def test_a_page_looks_at_so_many_users_only(graph: Graph, raw: Redis) -> None:
    """A page may be empty although more users follow, and the next page continues."""
    [viewer, wanted] = await sign_up(graph, viewer="V", anna="Anna")
    others = await people(graph, *(f"anna{n}" for n in range(20)))
    await raw.zadd(keys.blocking(viewer), {str(user): 1 for user in others})
    await settle(graph)
    searches = UserSearches(graph.binding, graph.users, scanned=8)

    pages, window = [], newest(3)
    while True:
        page, _ = await searches.page(graph.visibility.of(viewer), "ann", window)
        pages.append([entry.user for entry in page.items])
        if not page.has_next:
            break
        assert page.reached is not None
        window = newest(3, after=page.reached)

    assert pages == [[], [], [wanted]]


def expected(users: dict[int, tuple[str, str]], text: str) -> list[int]:
    """Return the users whom a text of words and runs must find, by a plain scan."""

    def matches(login: str, name: str) -> bool:
        parts = unicodedata.normalize("NFKC", name).casefold().split()
        return all(
            part in name if part in "王小明" or part in RUNS else any(own.startswith(part) for own in [login, *parts])
            for part in map(str.casefold, text.split())
        )

    first = [user for user, (login, _) in users.items() if login == text]
    return first + [user for user in sorted(users, reverse=True) if user not in first and matches(*users[user])]


async def test_a_search_equals_a_plain_scan(graph: Graph, long_profile: bool) -> None:
    """The results are equal for pages of any size, in both directions, while users sign up and change their names."""
    random = Random(5)  # noqa: S311 - reproducible
    users: dict[int, tuple[str, str]] = {}
    for turn in range(20 if long_profile else 3):
        for n in range(8):
            login = f"{random.choice(['ann', 'be', 'x_1'])}{turn}_{n}"
            name = " ".join(random.choices([*WORDS, *RUNS], k=random.choice([1, 2, 3])))
            users[(await graph.users.sign_up(login, PASSWORD, name)).id] = (login, name)
        for user in random.sample(sorted(users), 3):
            name = " ".join(random.choices([*WORDS, *RUNS], k=2))
            await graph.users.update_profile(user, name=name)
            users[user] = (users[user][0], name)
        await settle(graph)
        for _ in range(40):
            beginnings = [word[: random.randrange(1, len(word) + 1)] for word in WORDS]
            text = " ".join(random.choices([*beginnings, *RUNS, "小"], k=random.choice([1, 1, 2, 3])))
            if random.random() < 0.1:
                text = random.choice(list(users.values()))[0]
            size, forward = random.choice([1, 3, 100]), random.random() < 0.5
            assert await found(graph.user_searches, text, size=size, forward=forward) == expected(users, text), text


async def test_a_page_costs_one_round_trip(graph: Graph) -> None:
    """A login that the process has not looked up before takes one more. The rest is SQL."""
    await people(graph, *(f"anna{n}" for n in range(40)))
    [viewer] = await sign_up(graph, anna="Anna")
    for trips in (2, 1):
        async with counted(graph) as cost:
            page, _ = await graph.user_searches.page(graph.visibility.of(viewer), "anna", newest(30))
        assert (len(page.items), page.has_next) == (30, True)
        assert cost.round_trips == trips


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'text' has no letter or digit"),
        (" @! ", "'text' has no letter or digit"),
        ("a" * 51, "'text' has 51 characters; the limit is 50"),
        ("a\ud800", "lone surrogate"),
    ],
)
async def test_an_invalid_text_is_refused(graph: Graph, text: str, message: str) -> None:
    with pytest.raises(BadFilter, match=message):
        await graph.user_searches.page(SYSTEM, text, newest(10))


@pytest.mark.parametrize("text", ["a" * 50, "王" * 50, " ".join("abcdefghijklmnopqrstuvwxy"), "' OR 1=1 --", "%_\\"])
async def test_every_other_text_is_accepted(graph: Graph, text: str) -> None:
    await sign_up(graph, anna="Anna")
    assert await found(graph.user_searches, text) == []


async def test_without_the_archive_a_search_fails(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise ArchiveUnavailable("down")

    monkeypatch.setattr(graph.archive, "_transaction", fail)
    with pytest.raises(ArchiveUnavailable):
        await graph.user_searches.page(SYSTEM, "anna", newest(10))
