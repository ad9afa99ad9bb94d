"""The tree of an instance: broker > addresses > NAME > queues > anycast or multicast > NAME.

A queue that is published to directly is an address with one anycast queue.  An exchange is one
whose bound queues are multicast.  A broker that is not live has its cluster only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shmbroker.cli.console.standing import Standing
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.netbridge.config.config import Network

Node = dict[str, Any]
ADDRESSES_MAX: Final = 500
"""Nobody looks for one of thousands in a tree; the page of all queues finds it by its name."""


def root(standing: Standing, address: str, parts: list[Node]) -> Node:
    return {"name": address, "kind": "broker", "title": standing.name, "children": parts}


def addresses(broker: Broker, queues: Iterable[str]) -> Node:
    bound: dict[str, set[str]] = {}
    for each in broker.bindings():
        if each.to == "queue":
            bound.setdefault(each.exchange, set()).add(each.destination)
    found: dict[str, Node] = {}
    for queue in queues:
        _queues(found, queue)["anycast"].append(queue)
    for exchange in broker.exchanges():
        if exchange.name:
            of_it = _queues(found, exchange.name)
            of_it["exchange"] = exchange.kind
            of_it["multicast"] += sorted(bound.get(exchange.name, ()))
    children = [_address(name, found[name]) for name in sorted(found)[:ADDRESSES_MAX]]
    more = max(0, len(found) - ADDRESSES_MAX)
    return {"name": "addresses", "kind": "addresses", "children": children, "more": more}


def _queues(found: dict[str, Node], name: str) -> Node:
    return found.setdefault(name, {"anycast": [], "multicast": [], "exchange": None})


def _address(name: str, of: Node) -> Node:
    kinds = [
        {
            "name": kind,
            "kind": kind,
            "children": [{"name": each, "kind": "queue"} for each in of[kind]],
        }
        for kind in ("anycast", "multicast")
        if of[kind]
    ]
    queues = {"name": "queues", "kind": "queues", "children": kinds}
    return {"name": name, "kind": "address", "exchange": of["exchange"], "children": [queues]}


def cluster(network: Network) -> Node:
    """What the configuration says: it is the same whatever the broker is."""
    parts = {
        "connectors": {name: str(uri) for name, uri in network.connectors.items()},
        "broadcast groups": dict.fromkeys(network.broadcasts, ""),
        "discovery groups": dict.fromkeys(network.discoveries, ""),
    }
    children = [
        {
            "name": part,
            "kind": "group",
            "children": [
                {"name": name, "kind": "leaf", "title": title} for name, title in named.items()
            ],
        }
        for part, named in parts.items()
    ]
    return {"name": "cluster", "kind": "cluster", "children": children}
