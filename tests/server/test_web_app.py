"""The demo serves a built web application at `/`: its files and nothing else, with safe headers."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from graph import Graph
from server.demo import Demo
from server.demo.world import Person
from server.settings import Settings
from server.web_app import POLICY
from tests.server.conftest import Api, serving

PEOPLE = (Person("alice", "Alice"),)
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a small application, next to files that are not part of it."""
    built = tmp_path / "dist"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text("<!doctype html><title>App</title>")
    (built / "assets" / "index-B4d1.js").write_text("export {}")
    (built / "assets" / "index-C9.css").write_text("body {}")
    (built / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (built / "notes.bak").write_text("secret")
    (tmp_path / "secret.txt").write_text("secret")
    (built / "link.txt").symlink_to(tmp_path / "secret.txt")
    return built


@pytest.fixture
async def demo(settings: Settings, graph: Graph, folder: Path) -> AsyncIterator[Api]:
    """Serve the application."""
    async with serving(settings, graph, demo=Demo(PEOPLE, folder)) as api:
        yield api


async def test_files_have_their_media_types(demo: Api) -> None:
    """They do not depend on the types that the system knows."""
    types = {
        path: (await demo.client.get(path)).headers["content-type"]
        for path in ("/", "/index.html", "/assets/index-B4d1.js", "/assets/index-C9.css", "/favicon.svg")
    }
    assert types == {
        "/": "text/html; charset=utf-8",
        "/index.html": "text/html; charset=utf-8",
        "/assets/index-B4d1.js": "text/javascript; charset=utf-8",
        "/assets/index-C9.css": "text/css; charset=utf-8",
        "/favicon.svg": "image/svg+xml",
    }


async def test_a_browser_gets_the_page_at_every_address_of_the_application(demo: Api) -> None:
    for path in ("/", "/alice", "/alice/followers", "/settings?tab=profile"):
        page = await demo.client.get(path, headers=BROWSER)
        assert (page.status_code, page.text) == (200, "<!doctype html><title>App</title>"), path


async def test_programs_and_missing_files_get_404(demo: Api) -> None:
    """A missing script must not be answered with a page, and monitoring must not find pages that do not exist."""
    assert (await demo.client.get("/assets/gone.js", headers=BROWSER)).status_code == 404
    assert (await demo.client.get("/health/other")).status_code == 404


async def test_only_files_with_hashed_names_are_cached(demo: Api) -> None:
    """A new build is seen at the next visit; an unchanged page is not sent again."""
    hashed = await demo.client.get("/assets/index-B4d1.js")
    assert hashed.headers["cache-control"] == "public, max-age=31536000, immutable"
    page = await demo.client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    assert page.headers["etag"]


async def test_the_page_has_a_strict_policy(demo: Api) -> None:
    page = await demo.client.get("/alice", headers=BROWSER)
    assert page.headers["content-security-policy"] == POLICY.format(media="")
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in POLICY
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"


async def test_the_page_shows_files_of_the_media_hosts(settings: Settings, graph: Graph, folder: Path) -> None:
    own = settings.model_copy(update={"media_hosts": ("media.example.org", "cdn.example.org:8443")})
    async with serving(own, graph, demo=Demo(PEOPLE, folder)) as api:
        policy = (await api.client.get("/", headers=BROWSER)).headers["content-security-policy"]
    hosts = "https://media.example.org https://cdn.example.org:8443"
    assert f"img-src 'self' data: {hosts}; media-src 'self' {hosts}; " in policy


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/../../secret.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/link.txt",
        "/notes.bak",
        "/assets/",
        "/%00.txt",
    ],
)
async def test_nothing_outside_the_folder_is_served(demo: Api, path: str) -> None:
    """This covers `..`, absolute paths, links, and files of unknown types."""
    url = httpx.URL(demo.url).copy_with(raw_path=path.encode())
    response = await demo.client.send(httpx.Request("GET", url))
    assert response.status_code == 404
    assert "secret" not in response.text
    assert "root:" not in response.text


async def test_the_other_addresses_stay(demo: Api) -> None:
    """The API, the playground and the health checks come first."""
    assert "Fanline playground" in (await demo.client.get("/playground", headers=BROWSER)).text
    assert "Fanline playground" in (await demo.client.get("/graphql", headers=BROWSER)).text
    assert (await demo.ask("{ __typename }")).json() == {"data": {"__typename": "Query"}}
    assert (await demo.client.get("/health/live")).status_code == 200


async def test_without_an_application_the_playground_is_at_the_root(api: Api) -> None:
    response = await api.client.get("/")
    assert response.headers["location"] == "/playground"
