"""The latency of operations, as a histogram whose label is the operation's name.

Clients choose the names, so the number of labels is bounded: the names of trusted documents and the first 100 other
names in a process each have their own label. All further names share one label.
"""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Histogram

MAX_NAMES = 100  # besides those of trusted documents
MAX_LENGTH = 64  # characters of a name that gets a label
ANONYMOUS = "(anonymous)"  # in parentheses, which GraphQL names cannot contain
OTHER = "(other)"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Latency:
    """The histogram `fanline_operation_seconds` of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._histogram = Histogram(
            "fanline_operation_seconds",
            "Duration of queries and mutations, by the name of the operation.",
            ["operation"],
            registry=registry,
            buckets=BUCKETS,
        )
        self._other = self._histogram.labels(OTHER)
        self._by_name: dict[str | None, Histogram] = {None: self._histogram.labels(ANONYMOUS)}
        self._places = MAX_NAMES

    def trust(self, names: Iterable[str]) -> None:
        """Give each of these names its own label, in addition to the first 100 names that clients send."""
        self._by_name.update((name, self._histogram.labels(name)) for name in names)

    def observe(self, name: str | None, seconds: float) -> None:
        """Record the duration of an operation. O(1)."""
        child = self._by_name.get(name)
        if child is None:
            child = self._other
            if name is not None and self._places and len(name) <= MAX_LENGTH:
                self._places -= 1
                child = self._by_name[name] = self._histogram.labels(name)
        child.observe(seconds)
