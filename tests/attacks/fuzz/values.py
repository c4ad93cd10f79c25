"""Unusual values: wrong types, huge numbers, lone surrogates, deep lists."""

import json
from typing import Any

from tests.executor.differential.tapes import Tape

HUGE = "HUGE-NUMBER"  # stands for an integer that Python refuses to write
DIGITS = "9" * 5_000
ODD_TEXTS = (
    "", " ", "\\u0000", "\\ud800", "é", "e\\u0301\\u0315", "𝄞", "\\u202e", "\\ufeff", "a" * 300, "\\n", "' OR 1=1 --",
    "../../etc", "${jndi}", "%00", "null", "VXNlcjox", "VXNlcjo" + "5" * 400, "2024-01-01T00:00:00Z", "\\ud83d",
    "\\r\\nx: y", "{}", "<b>",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 2**31, 2**53 + 1, 2**64, -(2**63), 1e308, "", "a", "\ud800", "\udfff\ud800", "\0",
    "x" * 5_000, "a" + "\u0315\u0300" * 400, [], {}, [[]], [None], {"": None}, {"a": {"a": {}}}, HUGE, [HUGE],
    {"id": HUGE}, "9" * 5_000, ["x"] * 500, [[["x"]]] * 50, {f"k{at}": at for at in range(200)},
    "VXNlcjo5OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk",
)  # fmt: skip


def odd(tape: Tape) -> Any:
    """Return an unusual value, possibly nested in lists and objects."""
    value = tape.pick(ODD)
    for _ in range(tape.pick((0, 0, 0, 1, 2, 60))):
        value = [value] if tape.chance(50) else {"a": value}
    return value


def written(value: Any) -> bytes:
    """Return a value as JSON, including numbers that Python cannot write."""
    return json.dumps(value).replace(f'"{HUGE}"', DIGITS).encode()
