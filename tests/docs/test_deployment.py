"""The instructions of docs/deployment: an installation in a scratch folder, its services, metrics and secrets."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from server.settings import Settings
from tests.conftest import need
from tests.deployment.proxies import FOLDER, replaced
from tests.docs.blocks import ROOT, claim
from tests.docs.shell import commands, environment, has, running, sh
from tests.docs.test_commands import ready
from tests.server.cli.test_commands import ask, free_port

PAGE = "docs/deployment/README.md"
[INSTALL] = claim(__name__, "sh", page=PAGE, containing="useradd")
[SETTINGS] = claim(__name__, "ini", page=PAGE)
[START] = claim(__name__, "sh", page=PAGE, containing="systemctl")
[GRANT] = claim(__name__, "sh", page=PAGE, containing="runuser")
[DATABASE] = claim(__name__, "sh", page=PAGE, containing="createuser")
[UPGRADE] = claim(__name__, "sh", page="docs/operations.md", containing="git checkout")
[CONTAINERS] = claim(__name__, "sh", page=PAGE, containing="docker compose")
[FIREWALL] = claim(__name__, "text", page=PAGE, containing="table inet")
[SCRAPE] = claim(__name__, "yaml", page=PAGE)

OUTPUT = "<output of: openssl rand -hex 32>"
UNITS = ("fanline-worker.service", "fanline.service")
ELSEWHERE = """
useradd() { command -v useradd >/dev/null; }
git() {
  case "$1 ${2-}" in
    "clone $REPOSITORY") ln -s "$REPOSITORY"/* "$VENV" "$3" ;;
    "fetch " | "checkout v0.1.0") ;;
    *) return 1 ;;
  esac
}
uv() { command python3 -m uv "$@" --dry-run; }
systemctl() { :; }
journalctl() { :; }
runuser() { shift 3; "$@"; }
"""


class Machine:
    """A folder that stands in for the root of a machine, with its own ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.store_port = free_port(), free_port()
        for path in ("etc/systemd/system", "opt/fanline", "var/lib/fanline", "etc/prometheus"):
            (folder / path).mkdir(parents=True)

    def here(self, text: str) -> str:
        """Return a text with the paths and ports of this machine."""
        text = re.sub(r"(?<![\w.])/(?=etc/(fanline|systemd|prometheus)|opt/fanline|var/lib/)", f"{self.folder}/", text)
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}").replace("--port 8000", f"--port {self.port}")
        text = text.replace("<repository>", "$REPOSITORY").replace("<tag>", "v0.1.0")
        return text.replace("/usr/bin/python3", sys.executable)

    def sh(self, script: str) -> str:
        """Run a script as if on this machine."""
        variables = {"REPOSITORY": str(ROOT), "VENV": sys.prefix, "UV_PROJECT_ENVIRONMENT": sys.prefix}
        return sh(ELSEWHERE + self.here(script), self.folder, environment(**variables))

    @contextmanager
    def store(self) -> Iterator[None]:
        """Run the server that the page names, with valkey.conf."""
        (self.folder / "var/lib/valkey").mkdir()
        configuration = self.here((FOLDER / "valkey.conf").read_text("utf-8"))
        (self.folder / "valkey.conf").write_text(configuration.replace("port 6379", f"port {self.store_port}"))
        page = (FOLDER / "README.md").read_text("utf-8")
        [server] = re.findall(r"`(/opt/fanline/\S+/valkey-server)`", page)
        script = self.here(f"exec {server} {self.folder}/valkey.conf")
        with running(script, self.folder, environment(), self.folder / "store.log"):
            yield

    @contextmanager
    def service(self, unit: str) -> Iterator[None]:
        """Run the program of a unit with its environment and its credential."""
        text = (self.folder / "etc/systemd/system" / unit).read_text("utf-8")
        [program] = re.findall(r"^ExecStart=(.+)$", text, re.M)
        pairs = " ".join(re.findall(r"^Environment=(.+)$", text, re.M)).replace("%d", str(self.folder / "etc/fanline"))
        [file] = re.findall(r"^EnvironmentFile=(.+)$", text, re.M)
        script = self.here(f"set -a; . {file}; {pairs}; set +a; exec {program.replace('--workers 4', '')}")
        with running(script, self.folder / "var/lib/fanline", environment(), self.folder / f"{unit}.log"):
            yield


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with Fanline installed as the page says, apart from the user and the packages."""
    need(has("useradd") and has("openssl"), "useradd and openssl")
    machine = Machine(tmp_path)
    machine.sh(INSTALL.text)
    changes = {
        "127.0.0.1:6379": f"127.0.0.1:{machine.store_port}",
        "postgresql://fanline:password@127.0.0.1/fanline": f"sqlite:///{tmp_path}/archive.sqlite",
        OUTPUT: machine.sh(OUTPUT.removeprefix("<output of: ").removesuffix(">")).strip(),
    }
    (tmp_path / "etc/fanline/fanline.env").write_text(replaced(SETTINGS.text, changes))
    return machine


@pytest.mark.slow
def test_an_installation(machine: Machine) -> None:
    """It becomes ready, Prometheus may read its metrics, and commands reach its store."""
    folder, api = machine.folder, f"http://127.0.0.1:{machine.port}"
    assert (folder / "etc/fanline/secret").stat().st_mode & 0o777 == 0o600
    with ExitStack() as services:
        services.enter_context(machine.store())
        for unit in UNITS:
            services.enter_context(machine.service(unit))
        log = folder / "fanline.service.log"
        ready(f"{api}/health/ready", log)
        assert machine.sh(START.text).endswith('{"status":"ready"}')
        sign_up = 'mutation { signUp(input: {login: "alice", password: "correct horse"}) { userErrors { code } } }'
        assert ask(machine.port, sign_up)["data"]["signUp"] == {"userErrors": []}
        assert "alice now has the permission firehose." in machine.sh(GRANT.text)
        assert [line for line in log.read_text("utf-8").splitlines() if "maxmemory" in line] == []
        scrape(machine)


def scrape(machine: Machine) -> None:
    """Read the metrics as the configuration of Prometheus says."""
    configuration = yaml.safe_load(machine.here(SCRAPE.text))
    assert set(configuration) == {"rule_files", "scrape_configs"}
    [job] = configuration["scrape_configs"]
    assert set(job) == {"job_name", "authorization", "static_configs"}
    values = (machine.folder / "etc/fanline/fanline.env").read_text("utf-8")
    token = Path(job["authorization"]["credentials_file"])
    token.write_text(values.partition("FANLINE_METRICS_TOKEN=")[2])
    for target in job["static_configs"][0]["targets"]:
        headers = {"authorization": f"Bearer {token.read_text().strip()}"}
        assert "\nfanline_store_up 1.0\n" in httpx.get(f"http://{target}/metrics", headers=headers, timeout=60).text
        assert httpx.get(f"http://{target}/metrics", timeout=60).status_code == 401


@pytest.mark.external
def test_an_upgrade(machine: Machine) -> None:
    """The commands run; those that fetch and install do nothing here."""
    machine.sh(UPGRADE.text)


@pytest.mark.external
def test_the_database_of_the_archive(tmp_path: Path) -> None:
    """PostgreSQL's commands accept the options on the page."""
    for command in commands(DATABASE.text):
        program, *options = command.removeprefix("sudo -u postgres ").split()
        need(has(program), "createuser and createdb, from the package postgresql-client-common or postgresql")
        usage = sh(f"{program} --help", tmp_path, environment())
        assert all(option in usage for option in options if option.startswith("--"))


def test_the_settings_are_accepted() -> None:
    values = dict(line.split("=", 1) for line in SETTINGS.text.replace(OUTPUT, "0123456789abcdef").splitlines())
    settings = Settings.load(values)
    assert settings.trusted_proxies == ("127.0.0.1/32",)
    assert settings.metrics_token


@pytest.mark.external
def test_the_secrets_of_the_containers(tmp_path: Path) -> None:
    """The block writes every value that compose.yaml requires to a file that only its owner can access."""
    need(has("openssl"), "openssl")
    secrets, _, rest = CONTAINERS.text.partition("docker compose up")
    assert rest == " --build --detach --wait\ncurl http://127.0.0.1:8000/health/ready\n"
    sh(secrets, tmp_path, environment())
    written = dict(line.split("=", 1) for line in (tmp_path / ".env").read_text().splitlines())
    required = set(re.findall(r"\$\{(\w+):\?", (ROOT / "compose.yaml").read_text("utf-8")))
    assert (set(written), (tmp_path / ".env").stat().st_mode & 0o777) == (required, 0o600)
    for name in ("STORE_PASSWORD", "ARCHIVE_PASSWORD"):
        assert written[name].isalnum()


@pytest.mark.external
def test_the_firewall_accepts_its_rules() -> None:
    """They are checked in a network namespace, because even a check needs privileges."""
    need(has("nft"), "nft, from the package nftables")
    path = environment()["PATH"]
    own = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    command = [*own, str(shutil.which("nft", path=path)), "--check", "--file", "-"]
    done = subprocess.run(command, input=FIREWALL.text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_commands_of_docker_name_services_of_the_composition() -> None:
    """That their Fanline commands exist is checked in test_pages.py."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    page = (FOLDER / "README.md").read_text("utf-8")
    named = re.findall(r"docker compose (?:exec|run)(?: -T| --rm)* (\w+)", page)
    assert len(named) == 4
    assert set(named) <= set(services)
