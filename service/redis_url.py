"""The address of a Redis Cluster, read.

    redis+cluster://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT] …][?OPTION=VALUE …]        with TLS: rediss+cluster://

Each node of a cluster knows all others, so one is enough; with several, one of them may be away when a process starts.
A scheme of its own, for it cannot be told from the address of a single server otherwise, and every process would have
to ask before it could do anything.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

SCHEMES = ("redis+cluster://", "rediss+cluster://")
PORT = 6379


class Nodes(NamedTuple):
    """Where some nodes of a cluster are, and how one speaks to them, in redis-py's words."""

    places: list[tuple[str, int]]
    options: Mapping[str, Any]


def is_cluster(url: str) -> bool:
    return url.startswith(SCHEMES)


def nodes(url: str) -> Nodes:
    """What the address says; ValueError if it says nothing that can be."""
    from redis.asyncio.connection import SSLConnection, parse_url  # only here: a command line begins without it

    scheme, _, rest = url.partition("+cluster://")
    end = min((found for found in map(rest.find, "/?") if found >= 0), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    urls = [f"{scheme}://{user}{at}{host}{rest[end:]}" for host in hosts.split(",")]
    said: list[dict[str, Any]] = [dict(parse_url(one)) for one in urls]
    if not all(one.get("host") for one in said):
        raise ValueError("a Redis Cluster needs the name of a host, or several with commas between them")
    places = [(str(one.pop("host")), int(one.pop("port", PORT))) for one in said]
    options = said[0]
    if options.pop("db", 0):
        raise ValueError("a Redis Cluster has no databases but 0")
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    return Nodes(places, options)
