"""Every version is pinned once in pyproject.toml: in the declaration, or as a constraint for indirect dependencies."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import need
from tests.packaging.project import CONSTRAINTS, PROJECT, ROOT

LOCK = ROOT / "uv.lock"
UPDATE = "run `scripts/pin` and commit pyproject.toml"


def requirements(written: list[str]) -> list[Requirement]:
    """Parse requirements, omitting those for other platforms and versions of Python."""
    parsed = [Requirement(each) for each in written]
    return [each for each in parsed if each.marker is None or each.marker.evaluate()]


def direct() -> list[str]:
    """Return the requirements of the project and of its groups."""
    groups: dict[str, list[str]] = PROJECT["dependency-groups"]
    return [*PROJECT["project"]["dependencies"], *(each for group in groups.values() for each in group)]


def version(requirement: Requirement) -> str:
    """Return the pinned version of a requirement."""
    [specifier] = requirement.specifier
    assert specifier.operator == "==", str(requirement)
    return specifier.version


def pinned(written: list[str]) -> dict[str, str]:
    """Return the pinned versions by name, for this platform."""
    return {canonicalize_name(each.name): version(each) for each in requirements(written)}


def required_by(name: str, extras: set[str]) -> Iterator[Requirement]:
    """Yield the dependencies of an installed distribution with some of its extras, for this platform."""
    for written in distribution(name).requires or ():
        requirement = Requirement(written)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
            yield requirement


def installed() -> dict[str, str]:
    """Return the versions by name of all installed direct and indirect dependencies of the project."""
    found: dict[str, str] = {}
    seen, waiting = set(), requirements(direct())
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found[name] = distribution(name).version
        except PackageNotFoundError:
            continue  # of a group that is not installed
        waiting.extend(required_by(name, set(extras)))
    return found


def test_every_installed_dependency_has_the_version_that_is_pinned() -> None:
    pins = pinned(CONSTRAINTS) | pinned(direct())
    assert len(installed()) > 60
    assert installed().items() <= pins.items(), UPDATE


def test_nothing_is_pinned_twice() -> None:
    assert pinned(CONSTRAINTS).keys() & pinned(direct()).keys() == set()


def test_the_pins_are_those_of_the_whole_resolution() -> None:
    """For all platforms, groups and versions of Python, uv.lock has exactly the pinned versions."""
    need(LOCK.is_file(), "uv.lock, which `uv run` writes")
    packages = tomllib.loads(LOCK.read_text("utf-8"))["package"]
    locked = {(each["name"], each["version"]) for each in packages if "registry" in each["source"]}
    written = [Requirement(each) for each in [*CONSTRAINTS, *direct()]]
    assert locked == {(canonicalize_name(each.name), version(each)) for each in written}, UPDATE


def test_what_builds_the_wheel_is_pinned() -> None:
    tools = PROJECT["build-system"]["requires"] + PROJECT["tool"]["uv"]["build-constraint-dependencies"]
    assert all(version(Requirement(each)) for each in tools)


def test_no_package_host_is_named() -> None:
    """The pins can be resolved with a mirror."""
    text = re.sub(r"^\[project.urls\]\n(.+\n)+", "", (ROOT / "pyproject.toml").read_text("utf-8"), flags=re.M)
    assert "://" not in text
    assert "index" not in PROJECT["tool"]["uv"]
