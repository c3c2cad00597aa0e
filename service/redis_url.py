"""The address of a Redis Cluster, parsed.

    redis+cluster://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT] …][?OPTION=VALUE …]        with TLS: rediss+cluster://

Each node of a cluster knows all others, so one is enough; with several, one of them may be away when a process starts.
The scheme differs from that of a single server, because a process would otherwise have to ask the server what it is
before it could do anything else.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import ParseResult, parse_qs, unquote, urlparse

SCHEMES = ("redis+cluster://", "rediss+cluster://")
DEFAULT_PORT = 6379


class Nodes(NamedTuple):
    """Some nodes of a cluster as (host, port), and the options of connections to them, named as Redis clients do."""

    places: list[tuple[str, int]]
    options: Mapping[str, Any]


def is_cluster(url: str) -> bool:
    return url.startswith(SCHEMES)


def nodes(url: str) -> Nodes:
    """The nodes and options in the address; raises ValueError if it is not a valid one."""
    scheme, _, rest = url.partition("+cluster://")
    end = min((place for place in map(rest.find, "/?") if place >= 0), default=len(rest))
    user, at, hosts = rest[:end].rpartition("@")
    parsed = [urlparse(f"{scheme}://{user}{at}{host}{rest[end:]}") for host in hosts.split(",")]
    if not all(part.hostname for part in parsed):
        raise ValueError("The address of a Redis Cluster must name one or more hosts, separated by commas.")
    places = [(unquote(part.hostname or ""), part.port or DEFAULT_PORT) for part in parsed]
    options = _options(parsed[0])
    if _database(parsed[0], options):
        raise ValueError("A Redis Cluster has only the database 0.")
    return Nodes(places, options)


def _options(parsed: ParseResult) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, values in parse_qs(parsed.query).items():
        try:
            options[name] = OPTION_TYPES.get(name, str)(values[0])
        except ValueError:
            raise ValueError(f"The option {name!r} in the address of the store has an invalid value.") from None
    if parsed.username:
        options["username"] = unquote(parsed.username)
    if parsed.password:
        options["password"] = unquote(parsed.password)
    if parsed.scheme == "rediss":
        options["ssl"] = True
    return options


def _database(parsed: ParseResult, options: dict[str, Any]) -> int:
    """The number of the database, which leaves the options; a path that is not a number names none."""
    path = unquote(parsed.path).replace("/", "")
    return int(options.pop("db", path if path.isdecimal() else 0))


def _flag(text: str) -> bool:
    return text.upper() not in ("0", "F", "FALSE", "N", "NO")


# Options that are not text. (Those that only one client knows are left to it.)
OPTION_TYPES: dict[str, Callable[[str], Any]] = {
    "db": int,
    "socket_timeout": float,
    "socket_connect_timeout": float,
    "socket_keepalive": _flag,
    "max_connections": int,
    "health_check_interval": int,
    "ssl_check_hostname": _flag,
    "ssl_min_version": int,
    "protocol": int,
}
