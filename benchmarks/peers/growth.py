"""Growth of the CPU time with the size of an answer: page sizes, and levels of nested lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, linear_regression, median

from benchmarks.peers.clients import check
from benchmarks.peers.measure import SLICE_WARM_UP, Report, bench, rotated
from benchmarks.peers.queries import Query
from benchmarks.peers.results import cpu_ms
from benchmarks.peers.world import Size
from benchmarks.plots import by, plot
from benchmarks.report import Cell, Table

VARIANTS = ("fanline", "fanline-executor-off")
PAGES = (1, 2, 5, 10, 20, 50, 100)
LEVELS = (1, 2, 3, 4, 5)
USERS = 20
PERSON = "id login name followersCount relationship { state }"


@dataclass(frozen=True, slots=True)
class Course:
    """Queries of growing size. `what` describes what grows."""

    key: str
    what: str
    queries: Mapping[int, Query]


@dataclass(frozen=True, slots=True)
class Effort:
    """The number of rounds, the seconds of a slice, and the seconds to warm up."""

    rounds: int
    seconds: float
    warm_up: float


def pages() -> Course:
    """Return queries for growing pages of the home timeline, with authors and relationships."""
    edge = f"cursor node {{ id createdAt author {{ {PERSON} }} ... on Post {{ text platform }} }}"
    documents = {
        count: f"{{ viewer {{ homeTimeline {{ entries(first: {count}) {{ edges {{ {edge} }} }} }} }} }}"
        for count in PAGES
    }
    queries = {count: Query(f"page of {count}", text) for count, text in documents.items()}
    return Course("pages", "posts of a page", queries)


def levels(famous: str) -> Course:
    """Return nested queries of growing depth: 20 followers, then one follower of each user on every further level."""
    queries = {}
    for count in LEVELS:
        inner = PERSON
        for level in range(count - 1, -1, -1):
            inner = f"{PERSON} followers(first: {1 if level else USERS}) {{ nodes {{ {inner} }} }}"
        text = f"query G($login: String!) {{ user(by: {{login: $login}}) {{ {inner} }} }}"
        queries[count] = Query(f"{count} levels", text, {"login": famous})
    return Course("depth", f"levels of {USERS} users each", queries)


def grow(effort: Effort, size: Size, report: Report) -> list[Table]:
    """Measure both courses, with and without the executor, after comparing the answers."""
    with bench(VARIANTS, size) as running:
        tables = []
        for course in (pages(), levels(running.world.famous)):
            named = {query.name: query for query in course.queries.values()}
            check(running.servers, named, running.world.readers)
            found: dict[tuple[str, int], list[float]] = {}
            for nth in range(effort.rounds):
                for count, query in course.queries.items():
                    requests = [[query.request(token)] for token in running.world.readers]
                    for one in rotated(running.servers, nth):
                        warm_up = SLICE_WARM_UP if nth else effort.warm_up
                        each = running.run(one, requests, warm_up, effort.seconds)
                        found.setdefault((one.variant, count), []).append(cpu_ms(each))
                report(f"{course.what}: round {nth + 1} of {effort.rounds}")
            tables.append(table(course, found))
        return tables


def table(course: Course, found: Mapping[tuple[str, int], Sequence[float]]) -> Table:
    """Return the table of a course, with the deviation from a straight line."""
    rows: list[list[Cell]] = [[variant, count, median(some)] for (variant, count), some in sorted(found.items())]
    lines = []
    for variant in VARIANTS:
        points = {count: cell for name, count, cell in rows if name == variant}
        x, y = [float(count) for count in points], [float(cell) for cell in points.values()]
        slope, base = linear_regression(x, y)
        lines.append(f"{variant}: {base:.3f} + {slope:.4f} × n (R² {correlation(x, y) ** 2:.4f})")
    note = f"CPU ms of the server for a request; n: {course.what}. {'; '.join(lines)}."
    columns = ("variant", course.what, "CPU ms")
    return Table(course.key, f"CPU time of a request, by {course.what}", columns, rows, note)


def draw(tables: Sequence[Table], folder: Path) -> None:
    """Draw a plot of each course with linear axes."""
    for each in tables:
        axes = (each.columns[1], "CPU ms of a request")
        plot(folder / f"peers-{each.key}.svg", each.title, axes, by(each, "variant", axes[0], "CPU ms"), linear=True)
