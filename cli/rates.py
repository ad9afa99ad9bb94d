"""The queues of a vhost at one moment, and their rates between two moments."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.cli.connection import critical_queues, is_over_link

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker


@dataclass(frozen=True)
class Reading:
    """The queues, and the participants that have each open, at one moment."""

    at: float
    queues: dict[str, Any]
    holders: dict[str, list[str]]
    critical: dict[str, str]
    """What is wrong with queues that have not their live writer."""


def read(broker: Broker) -> Reading:
    critical = critical_queues(broker)
    return Reading(time.monotonic(), queues_of(broker), holders_of(broker), critical)


def queues_of(broker: Broker) -> dict[str, Any]:
    return {queue.name: queue for queue in broker.queues()}


def holders_of(broker: Broker) -> dict[str, list[str]]:
    """By queue: names and processes of the participants that have it open."""
    holders: dict[str, list[str]] = {}
    ours = None if is_over_link() else broker.participant
    for participant in broker.participants():
        if participant.id == ours:
            continue
        dead = "" if participant.state == "live" else f" ({participant.state})"
        for name in participant.queues:
            holders.setdefault(name, []).append(f"{participant.name}[{participant.pid}]{dead}")
    return holders


def rows(before: Reading, after: Reading) -> list[dict[str, Any]]:
    """The rates between two readings: queues without their writer first, then the busiest."""
    seconds = max(after.at - before.at, 1e-9)
    found = []
    for name, queue in after.queues.items():
        earlier = before.queues.get(name)
        if earlier is None or earlier.id != queue.id:  # a new queue has no earlier reading
            earlier = queue
        came = queue.published - earlier.published
        went = came - (queue.depth - earlier.depth)
        found.append(
            {
                "name": name,
                "depth": queue.depth,
                "slots": queue.slots,
                "paused": queue.paused,
                "in_per_second": came / seconds,
                "out_per_second": max(went, 0) / seconds,
                "consumers": queue.consumers,
                "producers": queue.producers,
                "open_in": after.holders.get(name, []),
                "critical": after.critical.get(name),
            }
        )
    found.sort(
        key=lambda row: (
            row["critical"] is None,
            -row["in_per_second"] - row["out_per_second"],
            -row["depth"],
        )
    )
    return found
