"""The keys of `--json` output.  They stay when names of the API change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from shmbroker.cli.output import body_fields

if TYPE_CHECKING:
    from shmbroker.ipc.catalog.catalog import QueueInfo
    from shmbroker.ipc.follower.gates import Gate
    from shmbroker.ipc.latency.statistics import QueueStatistics
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.message.group import GroupInfo
    from shmbroker.ipc.message.holder import HolderInfo
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.queue.origins import Origin
    from shmbroker.ipc.schedule.scheduled import ScheduledMessage
    from shmbroker.ipc.vhost.participants import ParticipantInfo

Fields = dict[str, Any]


def queue_fields(queue: QueueInfo, critical: str | None) -> Fields:
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
        "critical": critical,
    }


def statistics_fields(
    name: str,
    slots: int,
    is_paused: bool,
    critical: str | None,
    replicate: str,
    statistics: QueueStatistics,
    gates: Iterable[Gate],
    origins: Iterable[Origin],
) -> Fields:
    latency = statistics.latency
    return {
        "name": name,
        "depth": statistics.depth,
        "taken": statistics.taken,
        "slots": slots,
        "paused": is_paused,
        "critical": critical,
        "replicate": replicate,
        "published": statistics.published,
        "delivered": statistics.delivered,
        "acked": statistics.acked,
        "redelivered": statistics.redelivered,
        "expired": statistics.expired,
        "dead_lettered": statistics.dead_lettered,
        "set_aside": statistics.set_aside,
        "dropped": statistics.dropped,
        "scheduled": statistics.scheduled,
        "paged": statistics.paged,
        "paged_bytes": statistics.paged_bytes,
        "duplicates": statistics.duplicates,
        "replaced": statistics.replaced,
        "carried": statistics.carried,
        "slow_consumers": statistics.slow_consumers,
        "bytes": statistics.bytes,
        "consumers": statistics.consumers,
        "recorded": statistics.is_recorded,
        "latency": None if latency is None else asdict(latency),
        "gates": [asdict(gate) | {"text": str(gate)} for gate in gates],
        "origins": [asdict(origin) | {"text": str(origin)} for origin in origins],
    }


def group_fields(group: GroupInfo) -> Fields:
    return {
        "group": group.group,
        "participant": group.participant,
        "waiting": group.waiting,
        "taken": group.taken,
    }


def holder_fields(holder: HolderInfo, whose: ParticipantInfo | None) -> Fields:
    """`whose`: None if it has gone meanwhile."""
    return {
        **asdict(holder),
        "pid": whose.pid if whose else None,
        "name": whose.name if whose else None,
        "state": whose.state if whose else None,
    }


def message_fields(message: CopiedMessage | Message) -> Fields:
    return {
        "position": message.position,
        "key": message.key,
        "properties": message.properties,
        "published_at": message.published_at,
        **body_fields(message.body),
    }


def scheduled_fields(message: ScheduledMessage) -> Fields:
    fields = message_fields(message)
    del fields["position"]
    return {
        "id": message.id,
        "deliver_at": message.deliver_at.isoformat(),
        **fields,
        "deliveries": message.deliveries,
    }


def browsed_fields(message: CopiedMessage) -> Fields:
    return {
        **message_fields(message),
        "deliveries": message.deliveries,
        "taken": message.is_taken,
        "taken_by": message.taken_by,
        "confirmed": message.is_confirmed,
    }
