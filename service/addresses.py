"""Which addresses are public.

With an address of their choice, users could make the service call what only it can reach: the store, a cloud's metadata
service, a neighbour. `ipaddress.is_global` is not enough: it accepts multicast, and IPv6 addresses that stand for any
IPv4 address (64:ff9b::/96, 2002::/16).
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx

TUNNELS = [
    IPv6Network(net) for net in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
]


def is_public(address: str) -> bool:
    """Whether this is an address of the public internet, and none that tunnels to another."""
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and any(ip in net for net in TUNNELS):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def may_be_public(url: str) -> bool:
    """Whether the URL's host is a public address, or a name, which has to be resolved to know."""
    try:
        return is_public(httpx.URL(url).host)
    except ValueError:
        return True
