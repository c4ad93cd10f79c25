"""`python -m benchmarks.short_lives …`: run `fanline`, but keep data for a minute that it usually keeps for days.

A load of a few minutes then shows whether anything is kept forever. Use the command with `SETTINGS`.
"""

import inspect
import sys
from datetime import timedelta
from typing import Any

from graph.log.log import IdempotencyKey
from graph.tuning import Tuning
from server.cli.main import main

COMMAND = (sys.executable, "-m", "benchmarks.short_lives")
SECONDS = 60
NEWEST, NOTIFICATIONS = 10, 100
SETTINGS = {
    "FANLINE_HOT_AGE": f"{SECONDS}s",
    "FANLINE_LOG_RETENTION": f"{SECONDS}s",
    "FANLINE_NEAR_CACHE": "2000",
}
LIVES = (
    f"Posts older than {SECONDS} seconds leave the store, except the newest {NEWEST} of an author; events, idempotency "
    f"keys and tombstones also live for {SECONDS} seconds; a list of notifications has {NOTIFICATIONS} groups, and the "
    f"near cache {SETTINGS['FANLINE_NEAR_CACHE']} values."
)
CONSTANTS = {"KEY_SECONDS": SECONDS, "NONCE_SECONDS": SECONDS, "PASS_SECONDS": 10.0}
"""Constants of modules in `graph`, by name: the lives of idempotency keys, and the pause between two scans."""


def shorten() -> None:
    """Reduce the durations and sizes that no setting controls. All modules that use them must be imported first."""
    for name, module in list(sys.modules.items()):
        if name.startswith("graph."):
            vars(module).update({each: value for each, value in CONSTANTS.items() if each in vars(module)})
    set_defaults(IdempotencyKey, seconds=CONSTANTS["KEY_SECONDS"])
    lives = timedelta(seconds=SECONDS)
    set_defaults(Tuning, tombstones_live=lives, hot_newest=NEWEST, notifications_kept=NOTIFICATIONS)


def set_defaults(record: type, **values: Any) -> None:
    """Change the default values of a dataclass's fields."""
    function = vars(record)["__init__"]
    parameters = inspect.signature(function).parameters.values()
    defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    assert values.keys() <= defaults.keys()
    function.__defaults__ = tuple((defaults | values).values())


if __name__ == "__main__":
    shorten()
    main()
