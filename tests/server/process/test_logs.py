"""The log: clients cannot make it large, and it reports how many lines it omits."""

import json
import logging
import sys

import pytest

from graph import keys
from server.log_context import LOGGED, MAX_NAME, logged_fields
from server.process.logs import LONGEST, Line, Throttle, json_formatter
from tests.server.conftest import Api, events, until


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


def written(record: logging.LogRecord) -> dict[str, str]:
    """Return a record as JSON; it is one line."""
    text = json_formatter().format(record)
    assert "\n" not in text
    found: dict[str, str] = json.loads(text)
    return found


def test_a_record_is_a_json_object_with_the_request_and_the_operation() -> None:
    """Outside of an operation, it has neither."""
    outside = written(record(message="two\nlines: %s"))
    token = LOGGED.set(("abc", "Home"))
    inside = written(record())
    LOGGED.reset(token)
    assert outside.keys() == {"timestamp", "level", "logger", "message"}
    assert (outside["level"], outside["logger"]) == ("warning", "fanline.test")
    assert outside["message"] == "two\nlines: x"
    assert inside.keys() - outside.keys() == {"request_id", "operation"}
    assert (inside["request_id"], inside["operation"]) == ("abc", "Home")


def test_a_traceback_in_json_has_no_values_and_a_bounded_length() -> None:
    def fail() -> None:
        secret = "canary" + "_of_a_local_variable"
        raise RuntimeError(f"{'long ' * 10_000}{len(secret)}")

    failed = record()
    try:
        fail()
    except RuntimeError:
        failed.exc_info = sys.exc_info()
    found = written(failed)
    assert "in fail" in found["exception"]
    assert "canary_of_a_local_variable" not in found["exception"]
    assert len(found["exception"]) < LONGEST + 10


def test_a_long_name_of_an_operation_is_cut() -> None:
    """Clients choose the name."""
    token = LOGGED.set(("abc", "a" * 5_000))
    try:
        assert len(written(record())["operation"]) == MAX_NAME
    finally:
        LOGGED.reset(token)


def test_text_that_is_no_utf8_is_escaped() -> None:
    """An example is the name of a file, in the message and in a traceback."""
    failed = record(message="lone \udc80: %s")
    try:
        raise OSError("lone \udc80")
    except OSError:
        failed.exc_info = sys.exc_info()
    found = written(failed)
    assert found["message"] == "lone \\udc80: x"
    assert "OSError: lone \\udc80" in found["exception"]


async def test_work_for_all_clients_is_logged_without_a_request(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """This holds although the first subscription has started the work."""
    logged: list[dict[str, str]] = []

    def note(record: logging.LogRecord) -> bool:
        if "live feed" in record.msg:
            logged.append(logged_fields())
        return True

    caplog.handler.addFilter(note)
    live = "subscription Live { homeTimeline { __typename } }"
    async with api.stream(live, await api.token("alice")) as response:
        await anext(events(response))
        await api.graph.store.run("SET", keys.LOG, "not a log")
        await api.graph.store.run("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        await until(lambda: bool(logged))
    caplog.handler.removeFilter(note)
    assert logged[0] == {}
