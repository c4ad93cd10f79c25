"""Start-up checks of the store's servers: what they do when full or cut off from their replicas."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from graph.store.capacity import Memory, sections
from server.embedded import Durability, EmbeddedStore
from server.process.checks import check_store
from tests.server.cli.test_commands import PRODUCTION, fanline, free_port
from tests.server.process.test_checks import settings_of
from tests.support.graphs import environment_of

SAFE = Memory(used=1, limit=10, is_limited=True, policy="noeviction", replicas=1, needs_replicas=True)


def found(*primaries: Memory, **changed: Any) -> list[tuple[str, str]]:
    """Return the severity and text of each finding about these servers."""
    return [(finding.severity.value, finding.text) for finding in check_store(settings_of(**changed), primaries)]


def test_a_safe_store_has_no_findings() -> None:
    assert found(SAFE, SAFE) == []


def test_a_store_that_did_not_answer_has_no_findings() -> None:
    assert found() == []


@pytest.mark.parametrize(("env", "severity"), [("production", "refuse"), ("development", "warn")])
def test_a_store_that_removes_keys_is_refused_in_production(env: str, severity: str) -> None:
    """Each policy is reported once."""
    [finding] = found(SAFE, *2 * [replace(SAFE, policy="volatile-lru")], env=env)
    assert finding[0] == severity
    assert "(`maxmemory-policy volatile-lru`)" in finding[1]
    assert "Set `maxmemory-policy noeviction`" in finding[1]


def test_a_primary_that_accepts_changes_without_its_replicas_is_a_warning() -> None:
    [(severity, text)] = found(SAFE, replace(SAFE, needs_replicas=False))
    assert severity == "warn"
    assert "`min-replicas-to-write 1`" in text
    assert found(replace(SAFE, replicas=0, needs_replicas=False)) == []


def test_a_store_without_a_limit_is_a_warning_in_production() -> None:
    [(severity, text)] = found(replace(SAFE, is_limited=False))
    assert severity == "warn"
    assert "set its `maxmemory`" in text
    assert found(replace(SAFE, is_limited=False), env="development") == []
    assert found(replace(SAFE, is_limited=False), store_url=None) == []


def test_the_memory_is_what_the_server_compares_with_its_limit() -> None:
    """Buffers of the append-only file and of replicas do not count. Other fields and lines are ignored."""
    info = sections("# Memory\r\nused_memory:90\r\nmem_not_counted_for_evict:40\r\nmaxmemory:100\r\nx:1:2\r\n\r\n")
    assert Memory.of(info, "").fullness == 0.5
    assert Memory.of(sections("used_memory:50\r\nmaxmemory:0\r\ntotal_system_memory:200\r\n"), "").fullness == 0.25
    assert Memory.of(sections("ERR no permission"), "").fullness == 0


@pytest.mark.slow
@pytest.mark.parametrize("command", ["serve", "worker", "worker --once"])
def test_a_store_that_removes_keys_is_not_used(tmp_path: Path, command: str) -> None:
    """This applies in production. The server reports its policy."""
    with EmbeddedStore(tmp_path, Durability.RELAXED) as store:
        with redis.Redis.from_url(store.url) as client:
            client.config_set("maxmemory-policy", "volatile-lru")
        port = ("--port", str(free_port())) if command == "serve" else ()
        done = fanline(*command.split(), *port, **PRODUCTION, **environment_of(store.url, tmp_path))
    assert done.returncode == 1
    assert "The store removes keys when it is full (`maxmemory-policy volatile-lru`)" in done.stderr
    assert "Traceback" not in done.stderr
