"""A real Redis Cluster on this machine: three primaries with a replica each, to be killed, frozen and moved about."""

import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from redis import Redis
from redis.crc import key_slot

from service.store.redis.embedded import find_server
from service.tether import tethered
from tests.support.waiting import wait_until_sync

SLOTS = 16_384
PRIMARIES = 3
NODE_TIMEOUT_MS = 1000  # after which the others fail a node over


class Node:
    """A server of the cluster, and a client of it alone."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port, self.bus = _free_ports(2)
        self.client: Any = Redis(port=self.port, socket_timeout=5)
        self.is_up = False
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Starts the server, or starts it again with its data."""
        self.directory.mkdir(exist_ok=True)
        with (self.directory / "log").open("ab") as output:
            self._server = subprocess.Popen(
                tethered(
                    find_server(),
                    *("--port", str(self.port), "--cluster-port", str(self.bus), "--bind", "127.0.0.1"),
                    *("--dir", str(self.directory), "--save", "", "--appendonly", "yes", "--appendfsync", "always"),
                    *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)),
                    *("--repl-diskless-sync-delay", "0", *options),
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.is_up = True

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)
        self.is_up = False

    def thaw(self) -> None:
        self._send(signal.SIGCONT)
        self.is_up = True

    def kill(self) -> None:
        if self._server:
            self._send(signal.SIGKILL)
            self._server.wait()
            self._server, self.is_up = None, False

    def _send(self, number: signal.Signals) -> None:
        assert self._server is not None
        self._server.send_signal(number)

    @property
    def id(self) -> str:
        id: bytes = self.client.execute_command("CLUSTER MYID")
        return id.decode()


class KillableCluster:
    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}"

    @property
    def up(self) -> list[Node]:
        """The nodes that are neither dead nor frozen."""
        return [node for node in self.nodes if node.is_up]

    def primaries(self) -> list[Node]:
        return [node for node in self.up if _role(node) == "master"]

    def holder(self, key: str) -> Node:
        """The primary that has this key."""
        port = self._slots()[key_slot(key.encode())]
        return next(node for node in self.nodes if node.port == port)

    def replica_of(self, primary: Node) -> Node:
        ports = {int(_replication(node)["master_port"]): node for node in self.up if _role(node) == "slave"}
        return ports[primary.port]

    def whole(self) -> bool:
        """Whether all nodes are up and report so, and each replica is in sync with its primary."""
        for node in self.nodes:
            if not node.is_up or node.client.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
                return False
            if _role(node) == "slave" and _replication(node)["master_link_status"] != "up":
                return False
        return len(self.primaries()) == PRIMARIES and len(self._slots()) == SLOTS

    def flush(self) -> None:
        for node in self.primaries():
            node.client.flushall()

    def move(self, key: str, to: Node) -> None:
        """Moves the slot of this key to another primary, with all its keys."""
        slot, source = key_slot(key.encode()), self.holder(key)
        if source is to:
            return
        to.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
        source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", to.id)
        while names := source.client.execute_command("CLUSTER GETKEYSINSLOT", slot, 100):
            source.client.execute_command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *names)
        for node in (to, source, *self.primaries()):
            node.client.execute_command("CLUSTER SETSLOT", slot, "NODE", to.id)

    def _slots(self) -> dict[int, int]:
        """By slot, the port of its primary, as one of the nodes reports it."""
        ports: dict[int, int] = {}
        for first, last, (_, port, *_), *_ in self.up[0].client.execute_command("CLUSTER SLOTS"):
            ports |= dict.fromkeys(range(first, last + 1), port)
        return ports


def _replication(node: Node) -> Any:
    return node.client.info("replication")


def _role(node: Node) -> str:
    return str(_replication(node)["role"])


@contextmanager
def running_cluster() -> Iterator[KillableCluster]:
    with tempfile.TemporaryDirectory(prefix="sluice-cluster-") as directory, ExitStack() as ending:
        nodes = [Node(Path(directory) / str(n)) for n in range(2 * PRIMARIES)]
        for node in nodes:
            ending.callback(node.client.close)
            ending.callback(node.kill)
            node.start()
        wait_until_sync(lambda: all(node.client.ping() for node in nodes))
        first, primaries = nodes[0], nodes[:PRIMARIES]
        for n, node in enumerate(primaries):
            start, stop = n * SLOTS // PRIMARIES, (n + 1) * SLOTS // PRIMARIES
            node.client.execute_command("CLUSTER ADDSLOTSRANGE", start, stop - 1)
            node.client.execute_command("CLUSTER SET-CONFIG-EPOCH", n + 1)
        for node in nodes[1:]:
            first.client.execute_command("CLUSTER MEET", "127.0.0.1", node.port, node.bus)
        wait_until_sync(lambda: all(len(node.client.execute_command("CLUSTER NODES")) == len(nodes) for node in nodes))
        for primary, replica in zip(primaries, nodes[PRIMARIES:], strict=True):
            replica.client.execute_command("CLUSTER REPLICATE", primary.id)
        cluster = KillableCluster(nodes)
        wait_until_sync(cluster.whole)
        yield cluster


def _free_ports(n: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
