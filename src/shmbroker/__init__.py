"""shmbroker: a message broker for one host or one rack, at the price of shared memory.

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker.ipc import aio
    from shmbroker.ipc.base.errors import (
        ArenaFull,
        ConnectionClosed,
        ConnectionForked,
        Damaged,
        DeclaredDifferently,
        DeliveryRevoked,
        DiskFull,
        Empty,
        Error,
        InUse,
        InvalidArgument,
        InvalidName,
        JournalDamaged,
        JournalFailed,
        MessageGone,
        MessageTooLarge,
        NoReply,
        NotASegment,
        NotFound,
        OtherHeader,
        QueueFull,
        Replaced,
        RequesterLeft,
        SegmentExists,
        SelectorError,
        SubscriptionTaken,
        SystemRefused,
        TooMany,
        TransactionEnded,
        Unconfirmed,
        Unroutable,
        Untrusted,
    )
    from shmbroker.ipc.connection.broker import Broker, connect
    from shmbroker.ipc.exchange.exchange import Exchange
    from shmbroker.ipc.exchange.named_subscription import NamedSubscription
    from shmbroker.ipc.latency.latency import Histogram
    from shmbroker.ipc.latency.statistics import QueueStatistics
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.queue.producer import Producer
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.queue.subscription import Subscription
    from shmbroker.ipc.request.request import Reply
    from shmbroker.ipc.ring.ring import Ring
    from shmbroker.ipc.selector.selector import Selector
    from shmbroker.ipc.spool.spool import Spool
    from shmbroker.ipc.transaction.transaction import Transaction
    from shmbroker.ipc.vhost import vhost

__all__ = [
    "ArenaFull",
    "Broker",
    "ConnectionClosed",
    "ConnectionForked",
    "CopiedMessage",
    "Damaged",
    "DeclaredDifferently",
    "DeliveryRevoked",
    "DiskFull",
    "Empty",
    "Error",
    "Exchange",
    "Histogram",
    "InUse",
    "InvalidArgument",
    "InvalidName",
    "JournalDamaged",
    "JournalFailed",
    "Message",
    "MessageGone",
    "MessageTooLarge",
    "NamedSubscription",
    "NoReply",
    "NotASegment",
    "NotFound",
    "OtherHeader",
    "Producer",
    "Queue",
    "QueueFull",
    "QueueStatistics",
    "Replaced",
    "Reply",
    "RequesterLeft",
    "Ring",
    "SegmentExists",
    "Selector",
    "SelectorError",
    "Spool",
    "Subscription",
    "SubscriptionTaken",
    "SystemRefused",
    "TooMany",
    "Transaction",
    "TransactionEnded",
    "Unconfirmed",
    "Unroutable",
    "Untrusted",
    "aio",
    "connect",
    "vhost",
]

_MODULES = {
    "Broker": "connection.broker",
    "CopiedMessage": "message.copied",
    "Exchange": "exchange.exchange",
    "Histogram": "latency.latency",
    "Message": "message.message",
    "NamedSubscription": "exchange.named_subscription",
    "Producer": "queue.producer",
    "Queue": "queue.queue",
    "QueueStatistics": "latency.statistics",
    "Reply": "request.request",
    "Ring": "ring.ring",
    "Selector": "selector.selector",
    "Spool": "spool.spool",
    "Subscription": "queue.subscription",
    "Transaction": "transaction.transaction",
    "connect": "connection.broker",
}
"""Where a name is that is no error."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object
    if name == "aio":
        value = import_module("shmbroker.ipc.aio")
    elif name == "vhost":
        value = import_module("shmbroker.ipc.vhost.vhost")
    else:
        module = import_module(f"shmbroker.ipc.{_MODULES.get(name, 'base.errors')}")
        value = getattr(module, name)
    globals()[name] = value
    return value
