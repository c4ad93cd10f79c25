"""Generated valid queries with large pages, aliases, lists of ids, nested connections and repeated leaves."""

import json
from typing import Any

from graphql import get_named_type, is_leaf_type

from schema import schema
from tests.attacks.world import World
from tests.executor.differential.tapes import Tape

SCHEMA = schema._schema
PRIVATE = {"likedPosts", "bookmarks", "mutedUsers", "blockedUsers"}
PAGED = frozenset({"entries", "followers", "following", "followersYouKnow"}) | PRIVATE
ROOTS = ("nodes", "user", "node", "nodes", "viewer")
KINDS = ("User", "Timeline")
ITEMS = ("Post", "Post", "Repost")  # posts have the larger fields
LEAST, MOST = 1, 100
DEPTH = 14
FIELDS = 160
ALIASES = 99


class HeavyWriter:
    """Writes a query from a tape. `scale`, above 0 and at most 1, shrinks all pages and lists, and nothing else."""

    def __init__(self, world: World, tape: Tape, scale: float) -> None:
        self._world = world
        self._tape = tape
        self._scale = scale
        self._fields = FIELDS
        self._aliases = ALIASES

    def write(self) -> str:
        """Return the query."""
        parts = [f"r{at}: {self._root()}" for at in range(1 + self._tape.below(3))]
        return "{ " + " ".join(parts) + " }"

    def _root(self) -> str:
        self._aliases -= 1
        name = self._tape.pick(ROOTS)
        if name == "nodes":
            kind = self._tape.pick(KINDS)
            pool = self._world.users if kind == "User" else (self._world.timeline,)
            count = self._size()
            some = [pool[(at * (1 + self._tape.below(3))) % len(pool)] for at in range(count)] if count < 8 else pool
            ids = json.dumps([some[at % len(some)] for at in range(count)])
            return f"nodes(ids: {ids}) {{ ... on {kind} {self._selection(SCHEMA.type_map[kind], 1)} }}"
        if name == "node":
            return f'node(id: "{self._world.loud}") {{ ... on User {self._selection(SCHEMA.type_map["User"], 1)} }}'
        if name == "viewer":
            return f"viewer {self._selection(SCHEMA.type_map['Viewer'], 1)}"
        login = self._tape.pick(self._world.logins)
        return f'user(by: {{login: "{login}"}}) {self._selection(SCHEMA.type_map["User"], 1)}'

    def _size(self) -> int:
        wanted = self._tape.pick((100, 100, 50, 95, 20, 10, 3, 1))
        return max(LEAST, round(wanted * self._scale))

    def _selection(self, type_: Any, depth: int) -> str:
        if type_.name == "TimelineItem":
            item = self._tape.pick(ITEMS)
            return f"{{ ... on {item} {self._selection(SCHEMA.type_map[item], depth)} }}"
        leaves = [name for name, field in type_.fields.items() if is_leaf_type(get_named_type(field.type))]
        branches = [name for name in type_.fields if name not in leaves]
        parts = [self._leaf(type_, leaves) for _ in range(self._tape.below(3))] if leaves else []
        count = self._tape.pick((1, 1, 2, 1, 3, 0)) if branches and depth < DEPTH else 0
        parts += [self._branch(type_, self._tape.pick(branches), depth) for _ in range(count) if self._fields > 0]
        return "{ " + (" ".join(parts) or "__typename") + " }"

    def _leaf(self, type_: Any, leaves: list[str]) -> str:
        name = self._tape.pick(leaves)
        times = self._tape.pick((1, 1, 4, 20, 60, 99))
        return " ".join(self._alias(name) for _ in range(times))

    def _branch(self, type_: Any, name: str, depth: int) -> str:
        inner = get_named_type(type_.fields[name].type)
        paging = f"({self._tape.pick(('first', 'first', 'first', 'last'))}: {self._size()})" if name in PAGED else ""
        return f"{self._alias(name)}{paging} {self._selection(inner, depth + 1)}"

    def _alias(self, name: str) -> str:
        self._fields -= 1
        if self._aliases <= 0:
            return f"z{name}: {name}" if name in PAGED else name
        self._aliases -= 1
        return f"k{self._aliases}: {name}"
