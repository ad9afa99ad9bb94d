"""The keys that `--json` promises, apart from the API's own names: those may change, these stay."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from shmbroker.cli.output import body_fields

if TYPE_CHECKING:
    from shmbroker.ipc.broker import QueueInfo
    from shmbroker.ipc.queue import BrowsedMessage, QueueStatistics

Fields = dict[str, Any]


def queue_fields(queue: QueueInfo) -> Fields:
    return {
        "name": queue.name,
        "id": queue.id,
        "depth": queue.depth,
        "slots": queue.slots,
        "published": queue.published,
        "consumers": queue.consumers,
        "producers": queue.producers,
        "paused": queue.paused,
        "created_at": queue.created_at,
    }


def statistics_fields(
    name: str, slots: int, is_paused: bool, statistics: QueueStatistics
) -> Fields:
    latency = statistics.latency
    return {
        "name": name,
        "depth": statistics.depth,
        "slots": slots,
        "paused": is_paused,
        "published": statistics.published,
        "delivered": statistics.delivered,
        "acked": statistics.acked,
        "redelivered": statistics.redelivered,
        "expired": statistics.expired,
        "dead_lettered": statistics.dead_lettered,
        "bytes": statistics.bytes,
        "consumers": statistics.consumers,
        "latency": asdict(latency) if is_dataclass(latency) else latency,
    }


def message_fields(message: Any, body: bytes) -> Fields:
    return {
        "position": message.position,
        "key": message.key,
        "properties": dict(message.properties or {}),
        "published_at": message.published_at,
        **body_fields(body),
    }


def browsed_fields(message: BrowsedMessage) -> tuple[Fields, bytes]:
    """What `queue browse` tells of a message, and its body as it is."""
    body = bytes(message.body)
    fields = {
        **message_fields(message, body),
        "deliveries": message.deliveries,
        "state": message.state,
    }
    return fields, body
