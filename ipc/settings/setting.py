"""The table of queue settings, for declarations, patterns and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from shmbroker.core.layout import (
    AUTO_DELETE_DELAY_NS,
    BLOCK,
    DISCONNECT,
    DROP_OLDEST,
    DUPLICATE_IDS,
    FAIL,
    MAX_DELIVERIES,
    MAX_SCHEDULED,
    NOTIFY,
    PAGE,
    SETTING_NAMES,
)

WHEN_FULL: Final[dict[str, int]] = {
    "block": BLOCK,
    "fail": FAIL,
    "drop-oldest": DROP_OLDEST,
    "page": PAGE,
}
SLOW_POLICY: Final[dict[str, int]] = {"notify": NOTIFY, "disconnect": DISCONNECT}


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    kind: Literal[
        "count", "queue", "seconds", "size", "flag", "choice", "levels", "buckets", "factor",
        "number", "rate",
    ]  # fmt: skip
    default: Any
    help: str
    choices: tuple[str, ...] = ()
    is_of_patterns: bool = False
    """Only patterns can have it, not a declaration."""


SETTINGS: Final = (
    Setting("max_deliveries", "count", MAX_DELIVERIES,
            "Number of deliveries, at most 14; then a message is dead-lettered.  none: no limit."),
    Setting("dead_letter", "queue", None,
            "Dead-letter queue.  Without one, dead-lettered messages are dropped."),
    Setting("ttl", "seconds", None, "Time to live of messages that have none of their own."),
    Setting("ttl_min", "seconds", None, "Minimum time to live."),
    Setting("ttl_max", "seconds", None, "Maximum time to live."),
    Setting("expiry_queue", "queue", None,
            "Queue for expired messages.  Without one they are dropped."),
    Setting("max_messages", "count", None,
            "Maximum number of messages.  Default: the number of slots."),
    Setting("max_bytes", "size", None, "Maximum size of all messages.  Default: the arena."),
    Setting("when_full", "choice", "block", "What happens when the queue is full.",
            tuple(WHEN_FULL)),
    Setting("priorities", "levels", False, "Deliver by priority; number of levels, or all."),
    Setting("duplicate_ids", "number", DUPLICATE_IDS,
            "Size of the deduplication log in message ids; 0: no deduplication."),
    Setting("groups", "buckets", False,
            "Deliver each message group to one consumer at a time; number of buckets, or all."),
    Setting("rebalance", "flag", False, "Redistribute the groups when a consumer joins."),
    Setting("single_active", "flag", False, "Deliver to one consumer at a time."),
    Setting("last_value", "flag", False, "Keep only the newest message of each key."),
    Setting("non_destructive", "flag", False,
            "Consumers leave messages in the queue; each sees all."),
    Setting("max_producer_bytes", "size", None,
            "Maximum memory in the arena of a participant that publishes here.  Default: none."),
    Setting("slow_consumer_threshold", "rate", None,
            "Least rate of a consumer, in messages a second; below it is slow."),
    Setting("slow_consumer_policy", "choice", "notify", "What happens to a slow consumer.",
            tuple(SLOW_POLICY)),
    Setting("auto_delete", "flag", False, "Delete the queue when it is empty and unused."),
    Setting("auto_delete_delay", "seconds", AUTO_DELETE_DELAY_NS / 1e9,
            "Time without use before it is deleted."),
    Setting("durable", "flag", False, "Write messages to disk before they are delivered."),
    Setting("redelivery_delay", "seconds", None, "Delay of a redelivery."),
    Setting("redelivery_multiplier", "factor", 1.0,
            "Factor between the delays of two redeliveries."),
    Setting("max_redelivery_delay", "seconds", None, "Maximum delay of a redelivery."),
    Setting("max_scheduled", "count", MAX_SCHEDULED, "Maximum number of scheduled messages."),
    Setting("auto_create", "flag", False, "Create a matching queue when it is first used.",
            is_of_patterns=True),
)  # fmt: skip

DEFAULTS: Final = {each.name: each.default for each in SETTINGS if not each.is_of_patterns}
OF_PATTERNS: Final = {each.name: each.default for each in SETTINGS}

assert set(OF_PATTERNS) <= set(SETTING_NAMES)
