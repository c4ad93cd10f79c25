"""`fanline explain`: the costs of a query as a tree, without its data."""

from pathlib import Path

import pytest
from rich.console import Console

from graph import Graph
from graph.paging import Window
from server.cli.explain import Question, explain, tree_of
from server.settings import Settings, SettingsError
from tests.support.graph_worlds import counted

HOME = """query Home($first: Int!) {
    viewer { homeTimeline { entries(first: $first) { nodes { author { login } ... on Post { text } } } } } }"""


def question(document: str = HOME, login: str | None = "alice", *, warm: bool = False) -> Question:
    return Question(Path("home.graphql"), document, {"first": 3}, None, login, warm)


def text_of(explanation: dict[str, object]) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as capture:
        console.print(tree_of(explanation, "alice"))
    return capture.get()


@pytest.fixture
async def alice(graph: Graph) -> int:
    """Return alice, who has three posts."""
    user = await graph.users.sign_up("alice", "correct horse", "Alice")
    for n in range(3):
        await graph.posts.publish(user.id, f"secret {n}")
    return user.id


async def test_a_query_is_run_as_a_user(settings: Settings, graph: Graph, alice: int) -> None:
    """The tree has the costs that the store counted, without the look-up of the user's login, and no data."""
    await graph.timelines.home(alice, Window(3, forward=True))
    await graph.timelines.wait_for_rebuilds()
    async with counted(graph) as cost:
        explanation = await explain(graph, settings, question())
    text = text_of(explanation)
    assert text.startswith("query Home, as alice: ")
    assert f"store: {cost.round_trips - 1} round trips, {cost.commands - 1} commands" in text
    assert "timelines: 1 page, 3 posts scanned, 0 dropped" in text
    assert "executor: a plan" in text
    assert "secret" not in text


async def test_a_warm_run_reads_the_cache(settings: Settings, graph: Graph, alice: int) -> None:
    cold = await explain(graph, settings, question())
    await graph.timelines.wait_for_rebuilds()
    await graph.store.run("DEL", f"home:{{{alice}}}")
    warm = await explain(graph, settings, question(warm=True))
    assert cold["timelines"]["read"][0]["sources"] == ["merge"]
    assert warm["timelines"]["read"][0]["sources"] == ["cache"]


@pytest.mark.parametrize(
    ("document", "login", "problem"),
    [
        ('mutation { publishPost(input: {text: "no"}) { postEdge { cursor } } }', "alice", "Only queries"),
        ("subscription { homeTimeline { __typename } }", "alice", "each event has an explanation"),
        ("{ nothing }", "alice", "home.graphql, line 1, column 3: Cannot query field 'nothing'"),
        (
            "query A { viewer { id } } query B { viewer { id } }",
            "alice",
            "several operations. Name one of them with --op",
        ),
        ("query ($first: UserBy!) { user(by: $first) { id } }", "alice", "Variable '\\$first'"),
        (HOME, "nobody", "no user with the login"),
    ],
)
async def test_what_is_not_explained(
    settings: Settings, graph: Graph, alice: int, document: str, login: str, problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        await explain(graph, settings, question(document, login))
    assert (await graph.users.posts_counts([alice])) == [3]


def test_the_file_must_exist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from server.cli.explain import print_explanation

    monkeypatch.setenv("FANLINE_DATA_DIR", str(tmp_path))
    with pytest.raises(SettingsError, match="cannot be read"):
        print_explanation(tmp_path / "missing.graphql", "{}", None, None, warm=False)
    with pytest.raises(SettingsError, match="not valid JSON"):
        print_explanation(Path(__file__), "{", None, None, warm=False)
