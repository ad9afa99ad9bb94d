"""shmbroker: a message broker for one host or one rack, at the price of shared memory.

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shmbroker import aio
    from shmbroker.connecting import cluster, connect
    from shmbroker.ipc.base.errors import (
        AlreadyDealtWith,
        ArenaFull,
        ConnectionClosed,
        ConnectionForked,
        Damaged,
        DeclaredDifferently,
        DeliveryRevoked,
        DiskFull,
        Empty,
        Error,
        GroupingTimeout,
        InUse,
        InvalidArgument,
        InvalidName,
        JournalDamaged,
        JournalFailed,
        MessageGone,
        MessageTooLarge,
        Moved,
        NoReply,
        NotAllowed,
        NotASegment,
        NotAsyncio,
        NotEnoughReplicas,
        NotFound,
        NotLocal,
        OtherHeader,
        QueueFull,
        Replaced,
        ReplicaReadOnly,
        RequesterLeft,
        SegmentExists,
        SelectorError,
        SubscriptionTaken,
        SystemRefused,
        TooMany,
        TransactionEnded,
        TransactionRolledBack,
        Unconfirmed,
        Unroutable,
        Untrusted,
    )
    from shmbroker.ipc.base.timeout import Seconds
    from shmbroker.ipc.catalog.catalog import BindingInfo, ExchangeInfo, QueueInfo, SubscriptionInfo
    from shmbroker.ipc.connection.broker import Broker
    from shmbroker.ipc.exchange.exchange import Exchange
    from shmbroker.ipc.exchange.named_subscription import NamedSubscription
    from shmbroker.ipc.follower.gates import Gate
    from shmbroker.ipc.latency.latency import Histogram
    from shmbroker.ipc.latency.statistics import Latency, Level, QueueStatistics
    from shmbroker.ipc.message.confirm import Confirm
    from shmbroker.ipc.message.copied import CopiedMessage
    from shmbroker.ipc.message.group import GroupInfo
    from shmbroker.ipc.message.holder import HolderInfo
    from shmbroker.ipc.message.loan import QueueLoan
    from shmbroker.ipc.message.message import Message
    from shmbroker.ipc.message.outgoing import Options
    from shmbroker.ipc.message.serializer import AnySerializer, Codec, Serializer
    from shmbroker.ipc.queue.durable import DurableProducer, DurableQueue
    from shmbroker.ipc.queue.origins import Origin
    from shmbroker.ipc.queue.producer import Producer
    from shmbroker.ipc.queue.queue import Queue
    from shmbroker.ipc.queue.retained_reader import KeptMessage
    from shmbroker.ipc.queue.retry import Retried
    from shmbroker.ipc.queue.subscription import Subscription
    from shmbroker.ipc.request.request import Reply
    from shmbroker.ipc.ring.port import Port
    from shmbroker.ipc.ring.ring import Ring
    from shmbroker.ipc.schedule.scheduled import ScheduledMessage, When
    from shmbroker.ipc.selector.selection import Selection
    from shmbroker.ipc.selector.selector import Selector
    from shmbroker.ipc.settings.setting import CommonSettings, PatternSettings, Settings
    from shmbroker.ipc.settings.settings import Explained, Pattern
    from shmbroker.ipc.spool.spool import Spool, Spooled
    from shmbroker.ipc.transaction.message import TransactionMessage
    from shmbroker.ipc.transaction.queue import TransactionQueue
    from shmbroker.ipc.transaction.transaction import Transaction
    from shmbroker.ipc.vhost import vhost
    from shmbroker.ipc.vhost.participants import ErrorInfo, ParticipantInfo

    __version__: str

__all__ = [
    "AlreadyDealtWith",
    "AnySerializer",
    "ArenaFull",
    "BindingInfo",
    "Broker",
    "Codec",
    "CommonSettings",
    "Confirm",
    "ConnectionClosed",
    "ConnectionForked",
    "CopiedMessage",
    "Damaged",
    "DeclaredDifferently",
    "DeliveryRevoked",
    "DiskFull",
    "DurableProducer",
    "DurableQueue",
    "Empty",
    "Error",
    "ErrorInfo",
    "Exchange",
    "ExchangeInfo",
    "Explained",
    "Gate",
    "GroupInfo",
    "GroupingTimeout",
    "Histogram",
    "HolderInfo",
    "InUse",
    "InvalidArgument",
    "InvalidName",
    "JournalDamaged",
    "JournalFailed",
    "KeptMessage",
    "Latency",
    "Level",
    "Message",
    "MessageGone",
    "MessageTooLarge",
    "Moved",
    "NamedSubscription",
    "NoReply",
    "NotASegment",
    "NotAllowed",
    "NotAsyncio",
    "NotEnoughReplicas",
    "NotFound",
    "NotLocal",
    "Options",
    "Origin",
    "OtherHeader",
    "ParticipantInfo",
    "Pattern",
    "PatternSettings",
    "Port",
    "Producer",
    "Queue",
    "QueueFull",
    "QueueInfo",
    "QueueLoan",
    "QueueStatistics",
    "Replaced",
    "ReplicaReadOnly",
    "Reply",
    "RequesterLeft",
    "Retried",
    "Ring",
    "ScheduledMessage",
    "Seconds",
    "SegmentExists",
    "Selection",
    "Selector",
    "SelectorError",
    "Serializer",
    "Settings",
    "Spool",
    "Spooled",
    "Subscription",
    "SubscriptionInfo",
    "SubscriptionTaken",
    "SystemRefused",
    "TooMany",
    "Transaction",
    "TransactionEnded",
    "TransactionMessage",
    "TransactionQueue",
    "TransactionRolledBack",
    "Unconfirmed",
    "Unroutable",
    "Untrusted",
    "When",
    "__version__",
    "aio",
    "cluster",
    "connect",
    "vhost",
]

_MODULES = {
    "Seconds": "base.timeout",
    "AnySerializer": "message.serializer",
    "Codec": "message.serializer",
    "Serializer": "message.serializer",
    "BindingInfo": "catalog.catalog",
    "Broker": "connection.broker",
    "CommonSettings": "settings.setting",
    "Confirm": "message.confirm",
    "CopiedMessage": "message.copied",
    "DurableProducer": "queue.durable",
    "DurableQueue": "queue.durable",
    "ErrorInfo": "vhost.participants",
    "Exchange": "exchange.exchange",
    "ExchangeInfo": "catalog.catalog",
    "Explained": "settings.settings",
    "Gate": "follower.gates",
    "GroupInfo": "message.group",
    "Histogram": "latency.latency",
    "HolderInfo": "message.holder",
    "KeptMessage": "queue.retained_reader",
    "Latency": "latency.statistics",
    "Level": "latency.statistics",
    "Message": "message.message",
    "NamedSubscription": "exchange.named_subscription",
    "Options": "message.outgoing",
    "Origin": "queue.origins",
    "ParticipantInfo": "vhost.participants",
    "Pattern": "settings.settings",
    "PatternSettings": "settings.setting",
    "Port": "ring.port",
    "Producer": "queue.producer",
    "Queue": "queue.queue",
    "QueueInfo": "catalog.catalog",
    "QueueLoan": "message.loan",
    "QueueStatistics": "latency.statistics",
    "Reply": "request.request",
    "Retried": "queue.retry",
    "Ring": "ring.ring",
    "ScheduledMessage": "schedule.scheduled",
    "Selection": "selector.selection",
    "Selector": "selector.selector",
    "Settings": "settings.setting",
    "Spool": "spool.spool",
    "Spooled": "spool.spool",
    "Subscription": "queue.subscription",
    "SubscriptionInfo": "catalog.catalog",
    "Transaction": "transaction.transaction",
    "TransactionMessage": "transaction.message",
    "TransactionQueue": "transaction.queue",
    "When": "schedule.scheduled",
}
"""Where a name is that is no error."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object
    if name == "aio":
        value = import_module("shmbroker.aio")
    elif name in ("cluster", "connect"):
        value = getattr(import_module("shmbroker.connecting"), name)
    elif name == "__version__":
        value = import_module("importlib.metadata").version("shmbroker")
    elif name == "vhost":
        value = import_module("shmbroker.ipc.vhost.vhost")
    else:
        module = import_module(f"shmbroker.ipc.{_MODULES.get(name, 'base.errors')}")
        value = getattr(module, name)
    globals()[name] = value
    return value
