"""shmbroker for asyncio: `from shmbroker.aio import connect` (docs/asyncio.md).

What both interfaces share is here too: messages, errors, information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from shmbroker import (
    AlreadyDealtWith,
    AnySerializer,
    ArenaFull,
    BindingInfo,
    Codec,
    CommonSettings,
    Confirm,
    ConnectionClosed,
    ConnectionForked,
    CopiedMessage,
    Damaged,
    DeclaredDifferently,
    DeliveryRevoked,
    DiskFull,
    Empty,
    Error,
    ErrorInfo,
    ExchangeInfo,
    Explained,
    Gate,
    GroupInfo,
    Histogram,
    InUse,
    InvalidArgument,
    InvalidName,
    JournalDamaged,
    JournalFailed,
    KeptMessage,
    Latency,
    Level,
    Message,
    MessageGone,
    MessageTooLarge,
    NoReply,
    NotAllowed,
    NotASegment,
    NotAsyncio,
    NotEnoughReplicas,
    NotFound,
    NotLocal,
    Options,
    Origin,
    OtherHeader,
    ParticipantInfo,
    Pattern,
    PatternSettings,
    QueueFull,
    QueueInfo,
    QueueStatistics,
    Replaced,
    Reply,
    RequesterLeft,
    Retried,
    ScheduledMessage,
    Seconds,
    SegmentExists,
    Selection,
    Selector,
    SelectorError,
    Serializer,
    Settings,
    SubscriptionInfo,
    SubscriptionTaken,
    SystemRefused,
    TooMany,
    TransactionEnded,
    TransactionMessage,
    TransactionRolledBack,
    Unconfirmed,
    Unroutable,
    Untrusted,
    When,
    connecting,
)
from shmbroker.ipc.aio import (
    Broker,
    Consumer,
    DurableProducer,
    DurableQueue,
    Exchange,
    Loan,
    NamedSubscription,
    Producer,
    Queue,
    Subscription,
    Transaction,
    TransactionQueue,
)
from shmbroker.ipc.aio.broker import Connecting
from shmbroker.ipc.aio.broker import connect as connect_local
from shmbroker.ipc.aio.verb import twin_function

if TYPE_CHECKING:
    from shmbroker.netbridge.client.cluster import Cluster

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
    "Consumer",
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
    "Histogram",
    "InUse",
    "InvalidArgument",
    "InvalidName",
    "JournalDamaged",
    "JournalFailed",
    "KeptMessage",
    "Latency",
    "Level",
    "Loan",
    "Message",
    "MessageGone",
    "MessageTooLarge",
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
    "Producer",
    "Queue",
    "QueueFull",
    "QueueInfo",
    "QueueStatistics",
    "Replaced",
    "Reply",
    "RequesterLeft",
    "Retried",
    "ScheduledMessage",
    "Seconds",
    "SegmentExists",
    "Selection",
    "Selector",
    "SelectorError",
    "Serializer",
    "Settings",
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
    "cluster",
    "connect",
]


@twin_function(connecting.connect)
def connect(url: str, **options: Any) -> Connecting:
    if connecting.is_local(url):
        for name in ("user", "password"):
            options.pop(name, None)
        return connect_local(url, **options)
    from shmbroker.netbridge.client.connecting import ConnectingOver

    options.pop("arena_bytes", None)
    return cast(Connecting, ConnectingOver(connecting.login_of(url, **options)))


@twin_function(connecting.cluster)
def cluster(uri: str, **login: Any) -> Cluster:
    from shmbroker.netbridge.client.cluster import Cluster
    from shmbroker.netbridge.client.connecting import ConnectingOver

    return Cluster(connecting.login_of(uri, **login), ConnectingOver)
