"""The networks of clients. Limits are counted per network, because one IPv6 client has many addresses."""

import ipaddress
from functools import lru_cache

CLIENT_PREFIX = 64  # bits: a client with IPv6 usually has a /64 network of its own
SITE_PREFIX = 48  # bits: a provider's customer may have 65,536 such networks


@lru_cache(maxsize=10_000)
def network_of(host: str) -> str:
    """Return the network that represents an anonymous client: an IPv4 address, or an IPv6 /64 network."""
    return _network(host, CLIENT_PREFIX)


@lru_cache(maxsize=10_000)
def site_of(host: str) -> str:
    """Return the network that a provider may assign to one customer: an IPv4 address, or an IPv6 /48 network."""
    return _network(host, SITE_PREFIX)


def _network(host: str, prefix: int) -> str:
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), prefix), strict=False))
