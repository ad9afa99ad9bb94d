"""Where a reply goes: the name of a temporary queue, which ends with the node that it is of.

So whoever replies at another node of a cluster finds it (ipc/catalog/node.c, ipc/request/reply.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shmbroker.core.layout import CATALOG_NODE_BYTES
from shmbroker.ipc._native import ffi, lib

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


def say_node(broker: Broker, cluster: str, node: bytes) -> None:
    """From now on names of temporary queues end with this node."""
    code = lib.sb_node_set(broker._connection, f"{cluster}.{node.hex()}".encode())
    broker._check(code, "saying which node this is")


def name_end(broker: Broker) -> str:
    """Of a temporary queue that is made now; empty where there is no cluster."""
    end = ffi.new("char[]", CATALOG_NODE_BYTES)
    broker._check(lib.sb_node_end(broker._connection, end), "asking which node this is")
    return str(ffi.string(end).decode())


def is_of_this_node(broker: Broker, name: str) -> bool:
    """False: of a temporary queue that was made before its node was known."""
    return bool(lib.sb_node_is_of(broker._connection, name.encode()))


def reply_to(broker: Broker, name: str, body: bytes, properties: bytes) -> None:
    """RequesterLeft; QueueFull.  `properties`: a MessagePack map with the correlation."""
    outgoing = ffi.new("sb_outgoing *")
    kept = ffi.from_buffer(body), ffi.from_buffer(properties)
    outgoing.body, outgoing.length = kept[0], len(body)
    outgoing.properties, outgoing.properties_length = kept[1], len(properties)
    code = lib.sb_reply_to(broker._connection, name.encode(), outgoing, 0)
    broker._check(code, f"a reply to {name!r}")
