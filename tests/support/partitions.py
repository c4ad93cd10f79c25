"""A cluster on this host whose nodes tests can separate from each other and from the clients.

Nodes and clients reach each node through proxies of its two ports, because the node announces the ports of the proxies.
Each node connects from its own address in 127.0.1.0/24, so a proxy knows which node a connection comes from. This needs
no privileges, but a system that accepts all addresses in 127.0.0.0/8, as Linux does.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from server.embedded import Durability
from server.local_cluster import ClusterNode
from tests.support.cluster import PRIMARIES, Cluster, Node


class Side(asyncio.Protocol):
    """One of the two connections of a flow. Data is forwarded to the other one."""

    transport: asyncio.Transport
    other: "Side | None" = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Forward data."""
        if self.other is not None:
            self.other.transport.write(data)

    def connection_lost(self, _: Exception | None) -> None:
        """Close the other connection."""
        if self.other is not None:
            self.other.transport.close()


class Flow(Side):
    """A connection to a node, which the proxy accepted. `source` is the address that it comes from."""

    def __init__(self, proxy: "Proxy") -> None:
        self.proxy = proxy
        self.source = ""
        self._kept = b""
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing until the proxy has connected to the node."""
        super().connection_made(transport)
        self.source = transport.get_extra_info("peername")[0]
        self.transport.pause_reading()
        self._connecting = asyncio.ensure_future(self._connect())

    def data_received(self, data: bytes) -> None:
        """Forward data. In Python 3.11.2, the first data is received although `connection_made` has paused reading."""
        if self.other is None or self._kept:
            self._kept += data
        else:
            super().data_received(data)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, node = await loop.create_connection(Side, "127.0.0.1", self.proxy.target())
        except OSError:
            self.transport.abort()
            return
        self.other, node.other = node, self
        self.proxy.flows.add(self)
        self.let(self.proxy.passes(self.source))

    def let(self, passes: bool) -> None:
        """Forward data, or keep it until a later call lets it pass."""
        if passes and self._kept and self.other is not None:
            self.other.transport.write(self._kept)
            self._kept = b""
        for side in (self, self.other):
            if side is not None and not side.transport.is_closing():
                (side.transport.resume_reading if passes else side.transport.pause_reading)()

    def abort(self) -> None:
        """Close both connections."""
        for side in (self, self.other):
            if side is not None:
                side.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the flow."""
        self.proxy.flows.discard(self)
        super().connection_lost(error)


class Proxy:
    """A proxy of one port of a node. `passes` tells whether data from an address is forwarded now."""

    def __init__(self, target: Callable[[], int], passes: Callable[[str], bool]) -> None:
        self.target = target
        self.passes = passes
        self.flows: set[Flow] = set()
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self.listening.getsockname()[1]
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Accept connections for as long as the event loop runs."""
        self._server = await asyncio.get_running_loop().create_server(lambda: Flow(self), sock=self.listening)

    async def stop(self) -> None:
        """Stop accepting connections, and close the existing ones."""
        assert self._server is not None
        self._server.close()
        for flow in list(self.flows):
            flow.abort()

    def apply(self) -> None:
        """Let the data of all flows pass, or keep it."""
        for flow in list(self.flows):
            flow.let(self.passes(flow.source))


class ProxiedNode(ClusterNode):
    """A node that announces the ports of its proxies."""

    def __init__(self, folder: Path, durability: Durability, address: str, passes: Callable[[str], bool]) -> None:
        super().__init__(folder, durability)
        self.address = address
        self.proxies = [Proxy(lambda: self._ports()[0], passes), Proxy(lambda: self._ports()[1], passes)]

    @property
    def port(self) -> int:
        """The port that clients use."""
        return self.proxies[0].port

    @property
    def cluster_port(self) -> int:
        """The port that other nodes use."""
        return self.proxies[1].port

    def _settings(self, path: Path) -> dict[str, str]:
        return {
            **super()._settings(path),
            "bind-source-addr": self.address,
            "cluster-announce-ip": "127.0.0.1",
            "cluster-announce-port": str(self.port),
            "cluster-announce-bus-port": str(self.cluster_port),
        }


class PartitionableCluster(Cluster):
    """A cluster whose nodes can be separated."""

    def __init__(self, folder: Path, replicas: int = 1) -> None:
        super().__init__(folder, Durability.RELAXED)
        self._separated: set[str] = set()
        self._from_clients = False
        self.proxied = [self._node(index) for index in range(PRIMARIES * (1 + replicas))]
        self.nodes = [*self.proxied]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def _node(self, index: int) -> ProxiedNode:
        address = f"127.0.1.{index + 1}"
        return ProxiedNode(
            self.folder / str(index), Durability.RELAXED, address, lambda source: self._passes(source, address)
        )

    def _passes(self, source: str, target: str) -> bool:
        if source.startswith("127.0.1."):
            return source == target or not {source, target} & self._separated
        return not (self._from_clients and target in self._separated)

    def __enter__(self) -> Self:
        self._thread.start()
        for proxy in self._proxies:
            self._run(proxy.start())
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for proxy in self._proxies:
            self._run(proxy.stop())
        self._run(asyncio.sleep(0.05))  # the event loop closes the connections
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def _proxies(self) -> list[Proxy]:
        return [proxy for node in self.proxied for proxy in node.proxies]

    def _run(self, work: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @contextmanager
    def partitioned(self, *nodes: Node, from_clients: bool = True) -> Iterator[None]:
        """Separate nodes from all others, from each other and from the clients.

        Data waits in the proxies, as if it had been lost and were sent again. Without `from_clients`, clients still
        reach the nodes.
        """
        self._change({node.address for node in self.proxied if node in nodes}, from_clients)
        try:
            yield
        finally:
            self._change(set(), from_clients)

    def _change(self, separated: set[str], from_clients: bool) -> None:
        async def change() -> None:
            self._separated, self._from_clients = separated, from_clients
            for proxy in self._proxies:
                proxy.apply()

        self._run(change())
