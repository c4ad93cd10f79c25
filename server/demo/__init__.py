"""The demo data: users, follows and posts; and what else only the demo has."""

from dataclasses import dataclass
from pathlib import Path

from server.demo.world import Person


@dataclass(frozen=True, slots=True)
class Demo:
    """What an application serves as a demo.

    The playground can be logged in as each of `people`; at first, it is as the first of them. `web` is the folder of a
    built web application, which is served at `/`. If `lively`, users of the demo publish and follow all the time.
    """

    people: tuple[Person, ...]
    web: Path | None = None
    lively: bool = False
