"""A bridge, network link or agent of the configuration: the queue that it ships, and what people
see of its link."""

from __future__ import annotations

import time
from collections.abc import Mapping

from shmbroker.netbridge.agent.option import Agent
from shmbroker.netbridge.broker.gates import Gated
from shmbroker.netbridge.broker.given import Shipping
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.config.of_bridges import Bridge
from shmbroker.netbridge.network.option import NetworkLink
from shmbroker.netbridge.plan.bridge import address_of


def shipped(bridge: Bridge) -> Shipped:
    kind, name = address_of(bridge.address)
    return Shipped(bridge.ships, name, kind)


def gated(bridges: Mapping[str, Bridge]) -> set[Gated]:
    return {Gated(name, each.ships) for name, each in bridges.items()}


def text(bridge: Shipping, state: str, link: Link | None = None) -> dict[str, object]:
    member, peer = link.peer if link is not None else (None, None)
    own: dict[str, object] = {}
    if isinstance(bridge, Agent):
        own = {"exchange": bridge.exchange, "mode": bridge.mode.word}
    return own | {
        "name": bridge.name,
        "queue": "" if isinstance(bridge, NetworkLink) else bridge.queue,
        "address": bridge.address if isinstance(bridge, Bridge) else "",
        "plan": bridge.plan if isinstance(bridge, Bridge) else str(bridge.to),
        "state": state,
        "since": link.since if link is not None else time.time(),
        "member": str(member or ""),
        "peer": peer.name if peer is not None else "",
        "node": peer.node.hex() if peer is not None else "",
        "reason": link.why if link is not None else "",
    }
