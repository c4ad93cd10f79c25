"""Safety checks at the start of `fanline serve` and `fanline worker`: pure functions of settings and process state.

A finding is a warning, or prevents the start if it cannot be intentional in production. It names the problem and the
remedy.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from graph.store.capacity import Memory
from server.settings import Settings

OPEN_FILES = 4096  # below this, a busy server runs out of descriptors
GUESSABLE = (  # words from examples; fewer than one in a million random 48-byte keys contain one of them
    "0123456789", "1234567890", "abcdefgh", "change-me", "change_me", "changeme", "default", "example", "fanline",
    "for tests", "insecure", "password", "placeholder", "qwerty", "replace", "secret", "your-key", "your_key",
)  # fmt: skip
SAFE_POLICY = "noeviction"
CLEAR_TEXT = ("valkey", "redis", "valkey+cluster", "redis+cluster")


class Severity(Enum):
    """Whether a finding is a warning or prevents the start."""

    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Finding:
    """An unsafe condition: what is wrong, and what to do."""

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about the process that the checks use.

    `modes` are the permission bits of the data files and folders that exist, `keys` the keys that sign access tokens,
    and `host` the address to listen on, or None.
    """

    uid: int
    open_files: int
    modes: Mapping[Path, int]
    keys: tuple[str, ...] = ()
    host: str | None = None


class UnsafeStart(Exception):
    """The process must not start. The message has one line for each reason."""


def check(settings: Settings, facts: Facts) -> list[Finding]:
    """Return the findings about a process with these settings, refusals first."""
    found = [*_files(settings, facts)]
    if settings.production:
        found += [*_keys(settings, facts), *_store(settings), *_process(facts)]
        if facts.host is not None:
            found += [*_listening(settings, facts.host), *_exposed(settings)]
    elif facts.host is not None and not _is_loopback(facts.host):
        found.append(
            _warning(
                f"The server listens on {facts.host} in development mode: the playground, introspection and metrics "
                "are public. Set FANLINE_ENV=production, or listen on 127.0.0.1."
            )
        )
    return sorted(found, key=lambda finding: finding.severity is not Severity.REFUSE)


def check_store(settings: Settings, primaries: Sequence[Memory]) -> list[Finding]:
    """Return the findings about the servers of the store, refusals first."""
    unsafe = _refusal if settings.production else _warning
    found = [unsafe(removes_keys(policy)) for policy in sorted({each.policy for each in primaries} - {"", SAFE_POLICY})]
    if any(memory.replicas and not memory.needs_replicas for memory in primaries):
        found.append(
            _warning(
                "A primary of the store that is cut off from its replicas accepts changes, which the failover then "
                "loses. Set `min-replicas-to-write 1` and `min-replicas-max-lag 10` on all its servers."
            )
        )
    if settings.production and settings.store_url and not all(memory.is_limited for memory in primaries):
        found.append(
            _warning(
                "The store may use all the memory of its machine, and the system may then kill it: set its `maxmemory` "
                "to at most three quarters of the memory."
            )
        )
    return found


def removes_keys(policy: str) -> str:
    """Return the message for a `maxmemory-policy` that removes keys."""
    return (
        f"The store removes keys when it is full (`maxmemory-policy {policy}`): users would be logged out, and a "
        f"repeated request would be carried out twice. Set `maxmemory-policy {SAFE_POLICY}`."
    )


def _warning(text: str) -> Finding:
    return Finding(Severity.WARN, text)


def _refusal(text: str) -> Finding:
    return Finding(Severity.REFUSE, text)


def _keys(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Yield a refusal for each key copied from an example. `Settings` already refuses short and repetitive keys."""
    name = "FANLINE_SECRET_FILE" if settings.secret_file else "FANLINE_SECRET"
    for key in facts.keys:
        if word := next((word for word in GUESSABLE if word in key.lower()), None):
            yield _refusal(
                f"A key of {name} contains `{word}` and can be guessed. Create one with `openssl rand -base64 48`."
            )


def _files(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Yield findings about data that other users of the machine can read or replace.

    A secret file that others can read is only a warning: Docker and Kubernetes mount secrets with such a mode.
    """
    unsafe = _refusal if settings.production else _warning
    for path, mode in facts.modes.items():
        remedy = f"(mode {mode:03o}). Run `chmod {700 if path == settings.data_dir else 600} {path}`."
        if path == settings.data_dir:
            if mode & 0o022:
                yield unsafe(f"Other users can write to the data folder {path} {remedy}")
            elif mode & 0o055 and settings.production:
                yield _warning(f"Other users can list the data folder {path} {remedy}")
        elif path == settings.secret_file:
            if mode & 0o022:
                yield unsafe(f"Other users can write to the secret file {path} {remedy}")
            elif mode & 0o004:
                yield _warning(f"Other users can read the secret file {path} {remedy}")
        elif mode & 0o007:
            yield unsafe(f"Other users can read {path} {remedy}")


def _store(settings: Settings) -> Iterator[Finding]:
    if settings.store_url is None:
        yield _warning(
            "The embedded store runs on one machine and keeps one copy of the data; set FANLINE_STORE_URL to use "
            "another store."
        )
        return
    scheme, _, rest = settings.store_url.partition("://")
    remote = [host for host in _hosts(rest) if not _is_loopback(host)]
    if scheme not in CLEAR_TEXT or not remote:
        return
    url = urlsplit(settings.store_url)
    if "@" in url.netloc or "password" in parse_qs(url.query):
        yield _warning(
            f"The password of the store at {remote[0]} is sent without encryption: use valkeys:// (TLS) or a private "
            "network."
        )
    else:
        yield _warning(
            f"The store at {remote[0]} is used without a password and without encryption: anyone who can connect to "
            "it can read and change everything. Use valkeys://user:password@…, or let only Fanline connect to it."
        )


def _hosts(rest: str) -> Iterator[str]:
    """Yield the hosts in a store's URL: one, or several for a cluster."""
    for node in rest.partition("/")[0].partition("?")[0].rpartition("@")[2].split(","):
        yield urlsplit(f"//{node}").hostname or "localhost"


def _process(facts: Facts) -> Iterator[Finding]:
    if facts.uid == 0:
        yield _warning("Fanline runs as root: run it as a dedicated user, as docs/deployment/fanline.service does.")
    if facts.open_files < OPEN_FILES:
        yield _warning(
            f"The process may open only {facts.open_files} files, and each connection is one: raise the limit to "
            "65536 (`ulimit -n`, or LimitNOFILE= in systemd)."
        )


def _listening(settings: Settings, host: str) -> Iterator[Finding]:
    """Yield a warning if no proxy is trusted. Behind an untrusted proxy, all clients share one address."""
    if settings.trusted_proxies:
        return
    if _is_loopback(host):
        yield _warning(
            "FANLINE_TRUSTED_PROXIES is not set: all clients behind a proxy share one address and its limits. Set it "
            "to the proxy's address, here 127.0.0.1."
        )
    else:
        yield _warning(
            f"The server listens on {host} without TLS, and FANLINE_TRUSTED_PROXIES is not set: put a proxy with TLS "
            f"in front of the server, and set the variable to the proxy's address; see docs/deployment."
        )


def _exposed(settings: Settings) -> Iterator[Finding]:
    if settings.rate_limits is False:
        yield _warning(
            "FANLINE_RATE_LIMITS is off: one client can use up the server's whole capacity. Remove the setting."
        )
    if settings.playground:
        yield _warning("FANLINE_PLAYGROUND makes the playground public. Remove the setting.")
    if settings.introspection:
        yield _warning("FANLINE_INTROSPECTION makes the whole schema public. Remove the setting.")
    if settings.explain:
        yield _warning(
            "FANLINE_EXPLAIN lets every client see what an operation costs the store, and how many posts a page left "
            "out. Remove the setting when you have measured."
        )
    for origin in settings.allowed_origins:
        if origin.startswith("http://"):
            yield _warning(
                f"FANLINE_ALLOWED_ORIGINS contains {origin}, which has no TLS: an attacker on the network "
                "can change its pages and use the tokens of their users. Use https://."
            )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
