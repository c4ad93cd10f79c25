"""The demo: its generated users, follows and posts, and the options of an application that serves it."""

from dataclasses import dataclass
from pathlib import Path

from server.demo.world import Person


@dataclass(frozen=True, slots=True)
class Demo:
    """The options of an application that serves the demo.

    The playground can log in as each of `people`, and starts as the first. `web` is the folder of a built web
    application, which is served at `/`. If `lively`, users of the demo publish and follow while it runs.
    """

    people: tuple[Person, ...]
    web: Path | None = None
    lively: bool = False
