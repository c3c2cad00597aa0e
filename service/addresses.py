"""Which addresses are public, and which one to connect to.

With an address of their choice, users could make the service call what only it can reach: the store, a cloud's metadata
service, a neighbour. `ipaddress.is_global` is not enough: it accepts multicast, and IPv6 addresses that stand for any
IPv4 address (64:ff9b::/96, 2002::/16).

So a host name is resolved once, every address it has must be allowed, and the connection goes to the address that was
checked: a name that resolves differently a moment later gains nothing. The certificate is still checked for the name.
"""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import httpx

TUNNELS = [
    IPv6Network(net) for net in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
]

PORTS = {"http": 80, "https": 443}


class NoAddress(Exception):
    """There is no address to connect to; the message is a sentence for the user."""


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


async def checked_address(url: httpx.URL, private: bool, setting: str) -> str:
    """The address to connect to; NoAddress unless all addresses of the host are public, or `private` ones are allowed,
    which this setting does."""
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(
            url.raw_host.decode(), url.port or PORTS[url.scheme], type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError):  # UnicodeError: the name is malformed
        raise NoAddress("The host name cannot be resolved.") from None
    addresses = [str(info[4][0]) for info in infos]
    if not private and not all(map(is_public, addresses)):
        raise NoAddress(f"The address is not public ({setting} allows private ones).")
    return addresses[0]
