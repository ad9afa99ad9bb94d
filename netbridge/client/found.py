"""What a broker tells of its queues, as the objects that a local connection answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, TypeVar

from shmbroker.ipc.catalog.catalog import BindingInfo, ExchangeInfo, QueueInfo, SubscriptionInfo
from shmbroker.ipc.follower.gates import Gate
from shmbroker.ipc.latency.statistics import Latency, Level, QueueStatistics
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.group import GroupInfo
from shmbroker.ipc.message.holder import HolderInfo
from shmbroker.ipc.queue.origins import Origin
from shmbroker.ipc.schedule.scheduled import ScheduledMessage
from shmbroker.ipc.settings.settings import Explained, Pattern
from shmbroker.ipc.vhost.participants import ErrorInfo, ParticipantInfo
from shmbroker.netbridge.client.record import delivered

Made = TypeVar("Made")


def of(kind: Callable[..., Made], told: Mapping[str, Any], **more: Any) -> Made:
    """A broker of a later version may tell more of it."""
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    values = {name: value for name, value in told.items() if name in known} | more
    return kind(**{name: _fixed(value) for name, value in values.items()})


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _all(kind: Callable[..., Made], told: Iterable[Mapping[str, Any]]) -> list[Made]:
    return [of(kind, each) for each in told]


def queues(told: Any) -> list[QueueInfo]:
    return _all(QueueInfo, told)


def exchanges(told: Any) -> list[ExchangeInfo]:
    return _all(ExchangeInfo, told)


def bindings(told: Any) -> list[BindingInfo]:
    return _all(BindingInfo, told)


def subscriptions(told: Any) -> list[SubscriptionInfo]:
    return _all(SubscriptionInfo, told)


def participants(told: Any) -> list[ParticipantInfo]:
    return _all(ParticipantInfo, told)


def errors(told: Any) -> list[ErrorInfo]:
    return _all(ErrorInfo, told)


def patterns(told: Any) -> list[Pattern]:
    return _all(Pattern, told)


def statistics(told: Any) -> QueueStatistics:
    latency = told["latency"]
    levels = [of(Level, each) for each in told["levels"]]
    waited = None if latency is None else of(Latency, latency)
    return of(QueueStatistics, told, latency=waited, levels=levels)


def gates(told: Any) -> tuple[Gate, ...]:
    return tuple(_all(Gate, told))


def origins(told: Any) -> tuple[Origin, ...]:
    return tuple(_all(Origin, told))


def groups(told: Any) -> list[GroupInfo]:
    return _all(GroupInfo, told)


def holders(told: Any) -> list[HolderInfo]:
    return _all(HolderInfo, told)


def explained(told: Any) -> dict[str, Explained]:
    return {name: of(Explained, each) for name, each in told.items()}


def value(told: Any) -> CopiedMessage | None:
    """Its record; nothing if there is none."""
    return next(delivered(told), None) if told else None


def scheduled(told: Any) -> list[ScheduledMessage]:
    """Maps of messages."""
    return [
        of(ScheduledMessage, each, deliver_at=datetime.fromtimestamp(each["deliver_at"], UTC))
        for each in told
    ]
