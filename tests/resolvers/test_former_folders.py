"""Data folders of former versions open, and every answer is the same as before, except where the rules changed.

Each folder in `former` was made by the version with the commit that names it: an embedded store, an archive, and the
answers to many documents. Its users have done everything that users could do then, and one of them is erased. The
documents and answers have been adapted to later contracts; the store and the archive are as they were.
"""

import json
import lzma
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graph import Graph
from graph.archive.archive import Archive
from graph.store.store import Store
from server.embedded import Durability, EmbeddedStore
from tests.resolvers.conftest import World
from tests.support.graphs import CHEAP

FOLDERS = sorted(Path(__file__).with_name("former").glob("*.tar.xz"))
EXTRACTION: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
FROM_ARCHIVE = ("publicTimeline", "searchPosts")
"""Fields that show only what is archived."""


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name.partition(".")[0])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Unpack a data folder."""
    with lzma.open(request.param) as unpacked, tarfile.open(fileobj=unpacked) as archive:
        archive.extractall(tmp_path, **EXTRACTION)  # noqa: S202 - the archives are our own
    return tmp_path


@pytest.fixture
async def opened(folder: Path) -> AsyncIterator[Graph]:
    """Open the folder like a server that starts."""
    with EmbeddedStore(folder, Durability.RELAXED) as store:
        graph = Graph(Store(store.url, single_slot=True), Archive(f"sqlite:///{folder}/archive.sqlite"), CHEAP)
        await graph.archive.migrate()
        await graph.binding.check()
        yield graph
        await graph.close()


def posts_in(answer: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of an answer that have the fields `id` and `repostsCount` or `quotedPost`."""
    if isinstance(answer, Mapping):
        if "id" in answer and ("repostsCount" in answer or "quotedPost" in answer):
            yield dict(answer)
        answer = [*answer.values()]
    if isinstance(answer, list):
        for each in answer:
            yield from posts_in(each)


def without_quotes(answer: Any, quotes: Mapping[str, int]) -> Any:
    """Return an answer as this version gives it: earlier versions counted quotes as reposts.

    `quotes` has the number of quotes of each post.
    """
    if isinstance(answer, list):
        return [without_quotes(each, quotes) for each in answer]
    if not isinstance(answer, Mapping):
        return answer
    held = {name: without_quotes(value, quotes) for name, value in answer.items()}
    if "repostsCount" in held:
        held["repostsCount"] -= quotes[held["id"]]
    return held


async def test_a_former_data_folder_answers_as_before(folder: Path, opened: Graph) -> None:
    """Archiving the rest changes only answers that are read from the archive. A check finds nothing.

    Finally, the store is converted, and quotes no longer count as reposts. Even before, they are in no list of reposts.
    """
    world = World(opened)
    logins = ("alice", "bob", "erin", "frank")
    numbers = [user for user in await opened.users.ids_of_logins(logins) if user is not None]
    found = await opened.users.get_many(numbers)
    users = {user.login: user for user in found if user is not None}
    asked = json.loads((folder / "answers.json").read_text())
    assert (set(users), len(asked)) == (set(logins), 52)

    posts = {post["id"]: post for each in asked for post in posts_in(each["data"])}
    quoted = [post["quotedPost"]["id"] for post in posts.values() if post.get("quotedPost")]
    assert quoted
    later = [each for each in asked if not any(word in each["document"] for word in FROM_ARCHIVE)]
    for documents, quotes in ((asked, Counter[str]()), (later, Counter[str]()), (later, Counter(quoted))):
        for before in documents:
            answer = await world.ask(before["document"], users.get(before["viewer"]))
            expected = without_quotes(before["data"], quotes)
            assert (answer.data, answer.errors) == (expected, []), (before["viewer"], before["document"])
        await opened.worker().drain()
        await opened.archiver.work()
        if documents is later:
            assert await opened.conversion.finish()
    report = await opened.repair().run(correct=False)
    assert report.clean, report.examples


async def test_a_former_data_folder_takes_new_events(opened: Graph) -> None:
    [alice, erin] = await opened.users.ids_of_logins(["alice", "erin"])
    assert alice is not None
    assert erin is not None
    post = await opened.posts.publish(erin, "after the upgrade")

    await opened.bookmarks.add(opened.visibility.of(alice), alice, post.id)
    assert await opened.bookmarks.bookmarked_among(alice, [post.id]) == [True]
