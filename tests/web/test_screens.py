"""Every screen of the web app follows the accessibility rules. PICTURES=folder takes pictures, in both themes."""

import asyncio
import re

import pytest

from server.demo.people import PASSWORD as DEMO_PASSWORD
from server.seeding.load import demo_source, load
from tests.support.graph_worlds import PASSWORD, befriend, people, posts
from tests.support.worlds import TODAY
from tests.web.stage import DIST, Stage
from tests.web.tour import DESKTOP, PHONE, Tour

pytestmark = pytest.mark.slow

NOTHING = 9  # a port where nothing listens
COUNTS = '("(?:followers|posts)Count"):\\d+'
LONG_NAME = "Wolfeschlegelsteinhausenbergerdorffwelchevoralter"
TEXTS = (
    "https://example.com/" + "a-very-long-address-without-a-break/" * 5,
    "👩‍👩‍👧‍👦 One family, three hearts 💜💜💜 and a flag 🏳️‍🌈",
    "مرحبا بالعالم، هذه رسالة قصيرة من اليمين إلى اليسار.",
    "今天也要好好学习。",
    "First line\n\nThird line, after an empty one\n    and one with spaces",
)


async def test_a_new_user(stage: Stage, tour: Tour) -> None:
    """Log-in, sign-up, empty screens, screens that do not exist, loading, errors, and a server that is down."""
    await people(stage.graph, "dora", "bob", "carol")
    await stage.browser.do("open", "p", user="p", url=stage.url)
    await log_ins(tour)
    await empty_screens(tour)
    if tour.folder:
        await loading(tour)
    await failures(tour)
    await a_server_that_is_down(tour)
    assert tour.found == []


async def log_ins(tour: Tour) -> None:
    """The forms of log-in and sign-up, and their errors."""
    await tour.do("see", role="heading", name="Log in")
    await tour.shoot("log-in")
    await tour.do("click", role="button", name="Log in")
    await tour.do("read", text="wrong")
    await tour.shoot("log-in-errors")
    await tour.do("click", role="button", name="Create an account")
    await tour.shoot("sign-up")
    await tour.do("fill", label="Login", text="bob")
    await tour.do("fill", label="Password", text="short")
    await tour.do("click", role="button", name="Sign up")
    await tour.do("read", text="the minimum is 8")
    await tour.shoot("sign-up-errors")
    await tour.do("focused", name="Password")  # the first field with an error
    await tour.do("click", role="button", name="Log in instead")
    await tour.log_in("dora", PASSWORD)


async def empty_screens(tour: Tour) -> None:
    """Screens without posts and users, and addresses without a screen."""
    await tour.do("see", role="heading", name="Your timeline is empty")
    await tour.shoot("home-empty")
    await tour.go("@dora", "heading", "dora")
    await tour.shoot("profile-empty")
    for tab, text in (("followers", "No followers yet"), ("following", "You are not following anyone yet")):
        await tour.go(f"@dora/{tab}", "link", f"0 {tab}")
        await tour.do("read", text=text)
        await tour.shoot(f"{tab}-empty")
    await tour.go("@no%20body%25", "heading", "There is no user @no body%")
    await tour.shoot("profile-unknown")
    await tour.go("elsewhere", "heading", "This page does not exist")
    await tour.shoot("page-unknown")


async def loading(tour: Tour) -> None:
    """Placeholders."""
    await tour.do("hold", operation="ProfileScreenQuery")
    await tour.go("@bob", "status", "Loading profile")
    await asyncio.sleep(0.5)
    await tour.shoot("profile-loading", check=False)
    await tour.do("free")
    await tour.do("hold", operation="HomeScreenQuery")
    await tour.go("", "heading", "Your timeline is empty")
    await tour.do("reload")
    await asyncio.sleep(0.7)
    await tour.shoot("home-loading", check=False)
    await tour.do("free")
    await tour.do("reload")


async def failures(tour: Tour) -> None:
    """A button loads again what has failed. Queries are also retried when their screen is opened again."""
    await tour.do("withhold", name="SearchScreen")
    await tour.go("search/tea", "heading", "The search could not be loaded")
    await tour.do("errors")  # the component without its code has reported its failure
    await tour.do("free")
    await tour.do("click", role="button", name="Try again")
    await tour.do("read", text="No posts yet. New ones appear here.")
    await tour.go("", "heading", "Your timeline is empty")
    await tour.do("fail", operation="ProfileScreenQuery", status=502)
    await tour.go("@carol", "heading", "The profile could not be loaded")
    await tour.shoot("profile-error")
    await tour.do("free")
    await tour.go("", "heading", "Your timeline is empty")
    await tour.go("@carol", "navigation", "Profile")
    await tour.do("fail", operation="FollowersQuery", status=502)
    await tour.go("@carol/followers", "heading", "Followers could not be loaded")
    await tour.shoot("followers-error")
    await tour.do("free")
    await tour.do("click", role="button", name="Try again")
    await tour.do("read", text="No followers yet")


async def a_server_that_is_down(tour: Tour) -> None:
    """The app says so, keeps the draft, and continues as soon as the browser is online again."""
    proxy = tour.stage.proxy
    proxy.target, target = NOTHING, proxy.target
    proxy.cut()
    await tour.do("read", text="No connection to the server")
    await tour.shoot("disconnected")
    await tour.go("", "button", "Publish")
    await tour.do("fill", label="What is new?", text="Written while the server is away")
    await tour.do("click", role="button", name="Publish")
    await tour.do("read", text="Nothing is lost")
    await tour.shoot("composer-outage")
    await tour.do("fail", operation="SessionQuery", status=503)
    proxy.target = target
    await tour.do("reload")
    await tour.do("see", role="heading", name="Fanline could not be loaded")
    await tour.shoot("start-error")
    await tour.do("free")
    await tour.do("offline", isOffline=True)
    await tour.do("offline", isOffline=False)
    await tour.do("see", role="button", name="Publish")
    await tour.do("holds", label="What is new?", text="Written while the server is away")


async def test_a_user_of_the_demo(stage: Stage, tour: Tour) -> None:
    """Home with notices and errors, texts of all kinds, profiles, lists, the menu, and the end of the session."""
    await load(stage.graph, demo_source(people=40, posts=400), now=TODAY)
    await people(stage.graph, "dora")
    alice, bob, dora = [user or 0 for user in await stage.graph.users.ids_of_logins(["alice", "bob", "dora"])]
    await stage.log_in("p", "alice", password=DEMO_PASSWORD)
    await home(tour, alice, bob, dora)
    await texts_of_all_kinds(tour, alice, bob, dora)
    await profiles(tour)
    await dialogs(tour)
    await the_end_of_the_session(tour, alice)
    assert tour.found == []


async def home(tour: Tour, alice: int, bob: int, dora: int) -> None:
    """Home loads only the assets that the page names. New posts, notices, and a text that is too long or nearly so."""
    await tour.do("see", role="list", name="posts")
    await tour.stage.hears(1)
    assert set(await tour.do("assets")) == set(re.findall(r"assets/[\w.-]+", (DIST / "index.html").read_text()))
    await tour.shoot("home")
    await posts(tour.stage.graph, bob, "A post that has just arrived")
    await befriend(tour.stage.graph, dora, alice)
    await tour.do("see", role="button", name="1 new post")
    await tour.do("read", text="follows you now")
    await tour.do("fill", label="What is new?", text="x" * 1005)
    await tour.do("read", text="5 characters too many")
    await tour.do("see", role="button", name="Publish", disabled=True)
    await tour.shoot("home-notices")
    await tour.do("fill", label="What is new?", text="Almost " + "full " * 190)
    await tour.do("press", key="Tab")
    await tour.shoot("composer")
    await tour.do("fill", label="What is new?", text="")


async def texts_of_all_kinds(tour: Tour, alice: int, bob: int, dora: int) -> None:
    """Long words, emoji, and texts from right to left."""
    graph = tour.stage.graph
    await graph.users.update_profile(bob, name=LONG_NAME, bio="Long " * 60)
    await graph.users.update_profile(dora, name="👩‍🚀 דורה", bio="بعض الكلمات عن دورا")
    await befriend(graph, alice, bob, dora)
    await posts(graph, bob, *TEXTS)
    await posts(graph, dora, *TEXTS[1:3])
    await tour.do("reload")
    await tour.do("see", role="list", name="posts")
    await tour.do("size", **PHONE)
    assert await tour.do("overflow") == []
    await tour.do("size", **DESKTOP)
    await tour.shoot("home-texts")
    await tour.go("@alice/followers", "list", "followers")
    await tour.shoot("followers")
    await tour.go("@alice/following", "list", "following")
    await tour.shoot("following")


async def profiles(tour: Tour) -> None:
    """Profiles with large and small numbers."""
    for login, number, name in (("bob", 12345, "profile"), ("dora", 1, "profile-one")):
        for operation in ("ProfileScreenQuery", "useLiveProfileQuery"):
            await tour.do("rewrite", operation=operation, pattern=COUNTS, text=f"$1:{number}")
        await tour.go(f"@{login}", "list", "posts")
        await tour.shoot(name)
        await tour.do("free")


async def dialogs(tour: Tour) -> None:
    """The menu and the dialog close with Escape, and return the focus. What was not saved is forgotten."""
    await tour.do("menu")
    await tour.shoot("menu")
    await tour.do("press", key="Escape")
    await tour.do("focused", name="Account of Alice")
    await tour.go("@alice", "list", "posts")
    await tour.do("click", role="button", name="Edit profile")
    await tour.do("see", role="dialog", name="Edit profile")
    await tour.shoot("edit")
    await tour.do("fill", label="Name", text=" ")
    await tour.do("fill", label="About you", text="x" * 301)
    await tour.do("click", role="button", name="Save")
    await tour.do("read", text="the limit is 300")
    await tour.shoot("edit-errors")
    await tour.do("press", key="Escape")
    await tour.do("focused", name="Edit profile")
    await tour.do("click", role="button", name="Edit profile")
    await tour.do("holds", label="Name", text="Alice")
    await tour.do("press", key="Escape")


async def the_end_of_the_session(tour: Tour, user: int) -> None:
    """The app says so, and keeps the draft until the user has logged in again."""
    await tour.go("", "button", "Publish")
    await tour.do("fill", label="What is new?", text="Not finished")
    await tour.stage.graph.sessions.end(user)
    await tour.do("read", text="Your session has ended")
    await tour.shoot("session-ended")
    await tour.log_in("alice", DEMO_PASSWORD)
    await tour.do("see", role="button", name="Publish")
    await tour.do("holds", label="What is new?", text="Not finished")
