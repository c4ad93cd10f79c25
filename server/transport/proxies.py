"""Trusted proxies, whose headers `X-Forwarded-For` and `X-Forwarded-Proto` determine the client and the scheme."""

import ipaddress
import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

UNIX = "unix"
SCHEMES = ("http", "https")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Client = tuple[str, int]
Headers = Iterable[tuple[bytes, bytes]]

logger = logging.getLogger("fanline.server")


def parse_proxies(entries: Sequence[str]) -> tuple[str, ...]:
    """Return canonical entries: networks in CIDR notation, or `unix`. Raises ValueError for an invalid entry."""
    return tuple(UNIX if entry.lower() == UNIX else str(_network(entry)) for entry in entries)


class TrustedProxies:
    """The proxies whose headers are trusted. Without entries, no proxy is trusted, not even on this machine.

    With `warns`, the first request with `X-Forwarded-For` from an untrusted peer logs a warning.
    """

    def __init__(self, entries: Sequence[str] = (), *, warns: bool = False) -> None:
        self._unix = UNIX in entries
        self._networks = [_network(entry) for entry in entries if entry != UNIX]
        self._warns = warns
        self._known = lru_cache(maxsize=1024)(self._contains)

    def trusts(self, host: str | None) -> bool:
        """Return True if the peer of a connection is a trusted proxy; `host` is None on a unix socket."""
        return self._unix if host is None else bool(self._networks) and self._known(host)

    def apply(self, scope: dict[str, Any]) -> None:
        """Set the client and the scheme of a request from the headers that a trusted proxy added.

        `X-Forwarded-For` is read from right to left. The client is the first address that is not a trusted proxy. If
        there is none, or an invalid entry ends the search, the client is the last valid address that was read, or the
        peer of the connection if there was none.
        """
        forwarded: list[bytes] = []
        for name, value in scope["headers"]:
            if name == b"x-forwarded-for":
                forwarded.append(value)
            elif name == b"x-forwarded-proto":
                scheme = value.rpartition(b",")[2].strip().decode("latin-1").lower()
                if scheme in SCHEMES:
                    scope["scheme"] = scheme.replace("http", "ws") if scope["type"] == "websocket" else scheme
        scope["client"] = self._client(forwarded) or scope["client"]

    def warn_once(self, headers: Headers, host: str | None) -> None:
        """Log a warning the first time `X-Forwarded-For` from an untrusted peer is ignored."""
        if self._warns and any(name == b"x-forwarded-for" for name, _ in headers):
            self._warns = False
            logger.warning(
                "X-Forwarded-For from %s is ignored, so all clients behind this address share its limits. If it is "
                "your proxy, set FANLINE_TRUSTED_PROXIES=%s.",
                host or "a unix socket",
                host or UNIX,
            )

    def _client(self, forwarded: list[bytes]) -> Client | None:
        found: Client | None = None
        for entry in reversed(b",".join(forwarded).split(b",")):
            address = _address(entry.decode("latin-1").strip())
            if address is None:
                break
            found = (str(address), 0)
            if not self._known(found[0]):
                break
        return found

    def _contains(self, host: str) -> bool:
        address = _address(host)
        return address is not None and any(address in network for network in self._networks)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(entry, strict=False)
    except ValueError:
        raise ValueError(f"{entry!r} must be an address, a network like 10.0.0.0/8, or `unix`") from None


def _address(text: str) -> Address | None:
    """Parse an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80.

    Return None if the text is not an address.
    """
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address
