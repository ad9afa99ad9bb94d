"""shmbroker: a message broker for one host or one rack, at the price of shared memory.

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker.ipc import aio, vhost
    from shmbroker.ipc.broker import Broker, connect
    from shmbroker.ipc.copied import CopiedMessage
    from shmbroker.ipc.errors import (
        ArenaFull,
        ConnectionClosed,
        ConnectionForked,
        Damaged,
        DeclaredDifferently,
        DeliveryRevoked,
        Empty,
        Error,
        InUse,
        InvalidArgument,
        InvalidName,
        MessageGone,
        MessageTooLarge,
        NoReply,
        NotASegment,
        NotFound,
        QueueFull,
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
    from shmbroker.ipc.exchange import Exchange
    from shmbroker.ipc.latency import Histogram
    from shmbroker.ipc.message import Message
    from shmbroker.ipc.named_subscription import NamedSubscription
    from shmbroker.ipc.producer import Producer
    from shmbroker.ipc.queue import Queue
    from shmbroker.ipc.request import Reply
    from shmbroker.ipc.ring import Ring
    from shmbroker.ipc.selector import Selector
    from shmbroker.ipc.spool import Spool
    from shmbroker.ipc.statistics import QueueStatistics
    from shmbroker.ipc.subscription import Subscription
    from shmbroker.ipc.transaction import Transaction

__all__ = [
    "ArenaFull",
    "Broker",
    "ConnectionClosed",
    "ConnectionForked",
    "CopiedMessage",
    "Damaged",
    "DeclaredDifferently",
    "DeliveryRevoked",
    "Empty",
    "Error",
    "Exchange",
    "Histogram",
    "InUse",
    "InvalidArgument",
    "InvalidName",
    "Message",
    "MessageGone",
    "MessageTooLarge",
    "NamedSubscription",
    "NoReply",
    "NotASegment",
    "NotFound",
    "Producer",
    "Queue",
    "QueueFull",
    "QueueStatistics",
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

_ELSEWHERE = {
    "Broker": "broker",
    "CopiedMessage": "copied",
    "Exchange": "exchange",
    "Histogram": "latency",
    "Message": "message",
    "NamedSubscription": "named_subscription",
    "Producer": "producer",
    "Queue": "queue",
    "QueueStatistics": "statistics",
    "Reply": "request",
    "Ring": "ring",
    "Selector": "selector",
    "Spool": "spool",
    "Subscription": "subscription",
    "Transaction": "transaction",
    "connect": "broker",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object
    if name in ("aio", "vhost"):
        value = import_module(f"shmbroker.ipc.{name}")
    else:
        module = import_module(f"shmbroker.ipc.{_ELSEWHERE.get(name, 'errors')}")
        value = getattr(module, name)
    globals()[name] = value
    return value
