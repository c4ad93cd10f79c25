"""The networks of clients: limits are counted per network instead of per address."""

import ipaddress
from functools import lru_cache

CLIENT_PREFIX = 64  # bits: a client with IPv6 usually has a /64 network of its own


@lru_cache(maxsize=10_000)
def network_of(host: str) -> str:
    """Return the network that represents an anonymous client: an IPv4 address, or a /64 network of IPv6."""
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), CLIENT_PREFIX), strict=False))
