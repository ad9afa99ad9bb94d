"""The table of queue settings: all that is known of a setting stands here, once.

Declarations, patterns, options of the command line, `struct sb_settings`, the page in a queue's
ring and the table in docs/settings.md are made from it.  A new setting goes to the end of its
class; the order is that of bits and places in shared memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, TypedDict, get_args, get_type_hints

from shmbroker.core.layout import (
    ARENA_BYTES_MAX,
    AUTO_DELETE_DELAY_NS,
    BLOCK,
    BUCKETS,
    CONFIRM_REPLICAS_MAX,
    DISCONNECT,
    DROP_OLDEST,
    DUPLICATE_IDS,
    DUPLICATE_IDS_MAX,
    FAIL,
    LEVELS,
    MAX_DELIVERIES,
    MAX_DELIVERIES_MAX,
    MAX_SCHEDULED,
    MAX_SCHEDULED_MAX,
    MULTIPLIER_MAX,
    MULTIPLIER_UNIT,
    NAME_BYTES_MAX,
    NOTIFY,
    PAGE,
    REPLICATE_ALL,
    REPLICATE_CONFIGURATION,
    REPLICATE_NONE,
    RING_SETTINGS_AT,
    SETTING_LAST_VALUE_AT,
    SETTING_NAMES_AT,
    SETTING_NUMBERS_END,
    SETTING_REPLICATE_AT,
    SLOTS_MAX,
)
from shmbroker.ipc.base.timeout import Seconds

Kind = Literal[
    "count", "queue", "seconds", "size", "flag", "choice", "levels", "buckets", "factor", "number",
    "rate",
]  # fmt: skip
TIME_MAX_NS: Final = 1 << 60
NAME_BYTES: Final = 512
"""Of the page, for the name of a queue and its length."""
WHEN_FULL: Final = {"block": BLOCK, "fail": FAIL, "drop-oldest": DROP_OLDEST, "page": PAGE}
SLOW_POLICY: Final = {"notify": NOTIFY, "disconnect": DISCONNECT}

WhenFull = Literal["block", "fail", "drop-oldest", "page"]
SlowPolicy = Literal["notify", "disconnect"]
Replicate = Literal["all", "configuration", "none"]
Filters = Literal["ignore", "match"]
REPLICATE: Final[dict[str, int]] = {
    "all": REPLICATE_ALL, "configuration": REPLICATE_CONFIGURATION, "none": REPLICATE_NONE,
}  # fmt: skip

FILTERS: Final = {"ignore": 0, "match": 1}

assert NAME_BYTES >= 8 + NAME_BYTES_MAX + 1


@dataclass(frozen=True, slots=True)
class Setting:
    kind: Kind
    default: Any
    help: str
    page: str
    """Where the documentation has more."""
    most: int = 1
    """As the number that C has of it."""
    least: int = 0
    """Less is the default."""
    choices: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    bit: int = 0
    at: int = 0
    """In the ring."""
    is_at_once_at_0: bool = False
    """0 seconds are a value, and not none: C has a nanosecond in their place."""
    is_of_patterns: bool = False
    """Only patterns can have it, not a declaration."""
    is_of_now: bool = False
    """Patterns hold for queues that are there, too."""

    @property
    def field(self) -> str:
        """Its name in struct sb_settings."""
        return f"{self.name}_ns" if self.kind in ("seconds", "rate") else self.name

    @property
    def is_none_at_0(self) -> bool:
        return self.kind in ("count", "queue", "seconds", "size", "rate")

    @property
    def default_number(self) -> int:
        """What C has for its default."""
        if self.kind == "choice":  # without a default: it is decided when the queue is made
            return self.choices.get(self.default, len(self.choices))
        units = {"seconds": 1_000_000_000, "factor": MULTIPLIER_UNIT}
        return int((self.default or 0) * units.get(self.kind, 1))


LIMITS = "limits.md"
SLOW = "limits.md#slow-consumers"
DELAY = "scheduled.md#redelivery-after-a-delay"
AUTOMATIC = "#automatic-creation-and-deletion"


# fmt: off
class CommonSettings(TypedDict, total=False):
    """Settings of queues and of named subscriptions."""

    max_deliveries: Annotated[int | None, Setting(
        "count", MAX_DELIVERIES,
        "Number of deliveries, at most 14; then a message is dead-lettered.  none: no limit.",
        "dead-letters.md", most=MAX_DELIVERIES_MAX)]
    dead_letter: Annotated[str | None, Setting(
        "queue", None, "Dead-letter queue.  Without one, dead-lettered messages are dropped.",
        "dead-letters.md")]
    ttl: Annotated[Seconds | None, Setting(
        "seconds", None, "Time to live of messages that have none of their own.",
        "expiry.md", most=TIME_MAX_NS)]
    ttl_min: Annotated[Seconds | None, Setting(
        "seconds", None, "Minimum time to live.", "expiry.md", most=TIME_MAX_NS)]
    ttl_max: Annotated[Seconds | None, Setting(
        "seconds", None, "Maximum time to live, also of messages that have none.",
        "expiry.md", most=TIME_MAX_NS)]
    expiry_queue: Annotated[str | None, Setting(
        "queue", None, "Queue for expired messages.  Without one they are dropped.", "expiry.md")]
    max_messages: Annotated[int | None, Setting(
        "count", None, "Maximum number of messages.  Default: the number of slots.",
        LIMITS, most=SLOTS_MAX)]
    max_bytes: Annotated[int | str | None, Setting(
        "size", None, "Maximum size of all messages.  Default: the arena.",
        LIMITS, most=ARENA_BYTES_MAX)]
    when_full: Annotated[WhenFull, Setting(
        "choice", "block", "What happens when the queue is full.",
        LIMITS, most=PAGE, choices=WHEN_FULL)]
    priorities: Annotated[bool | int, Setting(
        "levels", False, "Deliver by priority; number of levels, or all.",
        "priorities.md", most=LEVELS)]
    duplicate_ids: Annotated[int, Setting(
        "number", DUPLICATE_IDS,
        "Size of the deduplication log in message ids; 0: no deduplication.",
        "duplicates.md", most=DUPLICATE_IDS_MAX)]
    groups: Annotated[bool | int, Setting(
        "buckets", False,
        "Deliver each message group to one consumer at a time; number of buckets, or all.",
        "groups.md", most=BUCKETS)]
    rebalance: Annotated[bool, Setting(
        "flag", False, "Redistribute the groups when a consumer joins.", "groups.md")]
    single_active: Annotated[bool, Setting(
        "flag", False, "Deliver to one consumer at a time.", "groups.md")]
    last_value: Annotated[bool, Setting(
        "flag", False, "Keep only the newest message of each key.", "last-value.md")]
    non_destructive: Annotated[bool, Setting(
        "flag", False, "Consumers leave messages in the queue; each sees all.", "last-value.md")]
    max_producer_bytes: Annotated[int | str | None, Setting(
        "size", None,
        "Maximum memory in the arena of a participant that publishes here.  Default: none.",
        "limits.md#limit-for-one-producer", most=ARENA_BYTES_MAX)]
    slow_consumer_threshold: Annotated[float | None, Setting(
        "rate", None, "Least rate of a consumer, in messages a second; below it is slow.",
        SLOW, most=TIME_MAX_NS)]
    slow_consumer_policy: Annotated[SlowPolicy, Setting(
        "choice", "notify", "What happens to a slow consumer.",
        SLOW, most=DISCONNECT, choices=SLOW_POLICY)]
    auto_delete: Annotated[bool, Setting(
        "flag", False, "Delete the queue when it is empty and unused.", AUTOMATIC)]
    auto_delete_delay: Annotated[Seconds, Setting(
        "seconds", AUTO_DELETE_DELAY_NS / 1e9, "Time without use before it is deleted.",
        AUTOMATIC, most=TIME_MAX_NS)]
    redelivery_delay: Annotated[Seconds | None, Setting(
        "seconds", None, "Delay of a redelivery.", DELAY, most=TIME_MAX_NS)]
    redelivery_multiplier: Annotated[float, Setting(
        "factor", 1.0, "Factor between the delays of two redeliveries.",
        DELAY, most=MULTIPLIER_MAX, least=MULTIPLIER_UNIT)]
    max_redelivery_delay: Annotated[Seconds | None, Setting(
        "seconds", None, "Maximum delay of a redelivery.", DELAY, most=TIME_MAX_NS)]
    max_scheduled: Annotated[int, Setting(
        "count", MAX_SCHEDULED, "Maximum number of scheduled messages.",
        "scheduled.md", most=MAX_SCHEDULED_MAX, least=1)]


class Settings(CommonSettings, total=False):
    """Settings of a queue."""

    durable: Annotated[bool, Setting(
        "flag", False, "Write messages to disk before they are delivered.", "durability.md")]
    confirm_replicas: Annotated[int, Setting(
        "number", 0, "Replicas on other brokers that confirms of a durable queue wait for.",
        "queue-replicas.md#confirms-that-wait-for-replicas", most=CONFIRM_REPLICAS_MAX)]
    redistribution_delay: Annotated[Seconds | None, Setting(
        "seconds", None,
        "Time without a consumer before messages go to another node of the cluster; 0: at once.",
        "clusters.md#redistribution", most=TIME_MAX_NS, is_at_once_at_0=True, is_of_now=True)]
    replicate: Annotated[Replicate, Setting(
        "choice", None,
        "What another member of a replicated node has when it takes over.  Default: `ha.replicate`"
        " for durable queues of such a node.",
        "replication.md#what-a-takeover-keeps", most=REPLICATE_NONE, choices=REPLICATE)]
    redistribution_filters: Annotated[Filters, Setting(
        "choice", "ignore",
        "Whether any consumer here keeps messages from going to another node of the cluster"
        " (ignore), or only one whose selector takes them (match).",
        "clusters.md#redistribution", most=1, choices=FILTERS, is_of_now=True)]


class PatternSettings(Settings, total=False):
    """Settings of the queues whose names match a pattern."""

    auto_create: Annotated[bool, Setting(
        "flag", False, "Create a matching queue when it is first used.", AUTOMATIC)]
# fmt: on


def _table() -> tuple[Setting, ...]:
    """In the order of the classes: inherited settings come first."""
    rows = [
        (name, next(each for each in get_args(hint) if isinstance(each, Setting)))
        for name, hint in get_type_hints(PatternSettings, include_extras=True).items()
    ]
    queues = [name for name, row in rows if row.kind == "queue"]
    return tuple(
        replace(
            row,
            name=name,
            bit=1 << place,
            at=SETTING_NAMES_AT + NAME_BYTES * queues.index(name)
            if row.kind == "queue"
            else RING_SETTINGS_AT + 8 * place,
            is_of_patterns=name not in Settings.__optional_keys__,
        )
        for place, (name, row) in enumerate(rows)
    )


SETTINGS: Final = _table()
BY_NAME: Final = {each.name: each for each in SETTINGS}
DEFAULTS: Final = {each.name: each.default for each in SETTINGS if not each.is_of_patterns}
OF_PATTERNS: Final = {each.name: each.default for each in SETTINGS}
OF_NOW: Final = tuple(each.name for each in SETTINGS if each.is_of_now)

assert len(SETTINGS) <= 32
assert all(list(each.choices.values()) == list(range(len(each.choices))) for each in SETTINGS)
assert RING_SETTINGS_AT + 8 * len(SETTINGS) <= SETTING_NUMBERS_END
assert tuple(REPLICATE) == get_args(Replicate)
assert BY_NAME["replicate"].at == SETTING_REPLICATE_AT, "a kernel looks there"
assert BY_NAME["last_value"].at == SETTING_LAST_VALUE_AT, "a kernel looks there"
