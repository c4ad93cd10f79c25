"""Compare `schema.graphql` with that of the last release: `python -m scripts.released_schema`.

Fails if there are breaking changes, as `docs/versions.md` defines them. A release is a tag such as `v0.1.0`. Without
one, there is nothing to compare.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from graphql import GraphQLSchema, build_schema, find_breaking_changes

ROOT = Path(__file__).parents[1]
SCHEMA = "schema.graphql"


def main() -> int:
    """Print the breaking changes since the last release. Return 1 if there are any."""
    release = last_release(ROOT)
    if release is None:
        print("There is no release yet.")
        return 0
    before = git(ROOT, "show", f"{release}:{SCHEMA}")
    changes = breaking_changes(before, (ROOT / SCHEMA).read_text("utf-8"))
    print(*(changes or [f"No breaking changes since {release}."]), sep="\n")
    return 1 if changes else 0


def last_release(root: Path) -> str | None:
    """Return the tag of the newest release in the history of this commit; None without one or without a repository."""
    if not (root / ".git").exists():
        return None
    tags = git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname")
    return next(iter(tags.split()), None)


def breaking_changes(before: str, after: str) -> list[str]:
    """Return descriptions of the breaking changes between two schemas, given as SDL."""
    schemas = build_schema(before), build_schema(after)
    return [change.description for change in find_breaking_changes(*schemas)] + [*_lost_attributes(*schemas)]


def _lost_attributes(before: GraphQLSchema, after: GraphQLSchema) -> Iterator[str]:
    """Describe breaking changes of `@oneOf` and `@specifiedBy`, which `find_breaking_changes` does not compare."""
    for name in before.type_map.keys() & after.type_map.keys():
        for attribute, directive in (("is_one_of", "@oneOf"), ("specified_by_url", "@specifiedBy")):
            old, new = (getattr(each.type_map[name], attribute, None) for each in (before, after))
            if old and new != old:
                yield f"{name} has another {directive} or none."


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command. Raises CalledProcessError if it fails."""
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)  # noqa: S607
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
