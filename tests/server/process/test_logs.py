"""The log: clients cannot make it large, and it reports how many lines it omits."""

import logging

from server.process.logs import LONGEST, Line, Throttle


def record(level: int = logging.WARNING, line: int = 1, message: str = "the store is away: %s") -> logging.LogRecord:
    return logging.LogRecord("fanline.test", level, "file.py", line, message, ("x",), None)


def test_each_warning_is_written_a_few_times_a_minute() -> None:
    """Other warnings are not affected. After a minute, the number of omitted lines is logged."""
    now = 0.0
    throttle = Throttle(lines=3, clock=lambda: now)
    assert [throttle.filter(record()) for _ in range(10)] == [True] * 3 + [False] * 7
    assert throttle.filter(record(line=2))
    now = 61.0
    later = record()
    assert throttle.filter(later)
    assert later.getMessage() == "the store is away: x (7 more like this were not logged)"
    assert throttle.filter(plain := record())
    assert plain.getMessage() == "the store is away: x"


def test_lines_below_warning_are_always_written() -> None:
    """Clients cannot cause such lines."""
    throttle = Throttle(lines=1)
    assert all(throttle.filter(record(logging.INFO)) for _ in range(100))


def test_a_long_line_is_cut_in_the_middle() -> None:
    """A traceback keeps its beginning and its end."""
    formatted = Line("%(message)s").format(record(message="%s" + "a" * 100_000 + "z"))
    assert len(formatted) < LONGEST + 10
    assert (formatted[0], formatted[-1]) == ("x", "z")
