"""The settings that a queue can have: one table, for declaring, for patterns, for the command."""

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
    """It makes no sense for a queue that is being declared."""


SETTINGS: Final = (
    Setting("max_deliveries", "count", MAX_DELIVERIES,
            "So often a message is delivered, up to 14 times; none: for ever."),
    Setting("dead_letter", "queue", None,
            "Where what was delivered too often, or rejected, goes; else it is dropped."),
    Setting("ttl", "seconds", None, "For how long a message lives that says nothing itself."),
    Setting("ttl_min", "seconds", None, "No message lives shorter."),
    Setting("ttl_max", "seconds", None, "No message lives longer."),
    Setting("expiry_queue", "queue", None, "Where what is expired goes; else it is dropped."),
    Setting("max_messages", "count", None, "Not more than so many; else as there are slots."),
    Setting("max_bytes", "size", None, "Not more than so much; else as the arena has."),
    Setting("when_full", "choice", "block", "What a producer finds then.", tuple(WHEN_FULL)),
    Setting("priorities", "levels", False, "The highest goes first; so many levels, or all."),
    Setting("duplicate_ids", "number", DUPLICATE_IDS,
            "So many message ids are remembered; 0: they are not looked at."),
    Setting("groups", "buckets", False, "Each message group goes to one consumer at a time."),
    Setting("rebalance", "flag", False, "Bind groups anew when a consumer joins."),
    Setting("single_active", "flag", False, "One consumer at a time gets all messages."),
    Setting("last_value", "flag", False, "Of the messages of a key only the newest stays."),
    Setting("non_destructive", "flag", False, "Nothing is taken: each consumer sees all."),
    Setting("max_producer_bytes", "size", None,
            "Who has more of the arena publishes no more here; else as it has."),
    Setting("slow_consumer_threshold", "rate", None,
            "A consumer is slow that does less than so many messages a second."),
    Setting("slow_consumer_policy", "choice", "notify", "What happens to it then.",
            tuple(SLOW_POLICY)),
    Setting("auto_delete", "flag", False, "Delete it when it is empty and out of use."),
    Setting("auto_delete_delay", "seconds", AUTO_DELETE_DELAY_NS / 1e9, "For so long."),
    Setting("durable", "flag", False, "Delivered when it is on disk, and there after a crash."),
    Setting("redelivery_delay", "seconds", None, "What comes back is delivered after so long."),
    Setting("redelivery_multiplier", "factor", 1.0, "Each time after so many times as long."),
    Setting("max_redelivery_delay", "seconds", None, "But not after longer."),
    Setting("max_scheduled", "count", MAX_SCHEDULED, "So many messages may be scheduled."),
    Setting("auto_create", "flag", False, "Make a queue that matches when somebody asks for it.",
            is_of_patterns=True),
)  # fmt: skip

DEFAULTS: Final = {each.name: each.default for each in SETTINGS if not each.is_of_patterns}
OF_PATTERNS: Final = {each.name: each.default for each in SETTINGS}

assert set(OF_PATTERNS) <= set(SETTING_NAMES)
