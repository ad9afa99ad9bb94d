"""Settings of a queue: how it treats its messages, part of what it is declared as.

What is left out comes from the patterns that match the queue's name, or is as in DEFAULTS.  C
checks numbers and names (ipc/catalog/settings.c); here is what people write turned into
what C wants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from shmbroker.core.layout import BUCKETS, LEVELS, MULTIPLIER_MAX, MULTIPLIER_UNIT, SETTING_NAMES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.names import name_bytes
from shmbroker.ipc.base.units import parse_size
from shmbroker.ipc.message.outgoing import ttl_ns
from shmbroker.ipc.message.properties import pack, unpack_all
from shmbroker.ipc.settings.setting import DEFAULTS, SLOW_POLICY, WHEN_FULL

WhenFull = Literal["block", "fail", "drop-oldest", "page"]
SlowPolicy = Literal["notify", "disconnect"]


class CommonSettings(TypedDict, total=False):
    max_deliveries: int | None
    """So often a message is delivered, 1 to 14; then it goes to dead_letter.  None: for ever."""
    dead_letter: str | None
    """The queue for what was delivered too often, or rejected; without one it is dropped."""
    ttl: float | None
    """For how many seconds a message may be delivered that names no ttl of its own."""
    ttl_min: float | None
    ttl_max: float | None
    """What is shorter or longer is made so; ttl_max goes for messages without a ttl as well."""
    expiry_queue: str | None
    """The queue for what is expired; without one it is dropped."""
    max_messages: int | None
    """Not acknowledged; None: as many as there are slots."""
    max_bytes: int | str | None
    """Of messages that are not acknowledged, headers included: "256MiB"; None: as the arena has."""
    when_full: WhenFull
    priorities: bool | int
    """The highest of the priorities 0 to 9 goes first; or so many levels, from 0 up."""
    duplicate_ids: int
    """Size of the deduplication log in message ids; 0: no deduplication."""
    groups: bool | int
    """Messages of a group go to one consumer at a time; or in so many buckets, up to 256."""
    rebalance: bool
    """Groups are bound anew whenever a consumer joins."""
    single_active: bool
    """One consumer at a time gets messages, the one with the highest priority; others stand by."""
    last_value: bool
    """A message replaces those of the same key that nobody has (docs/last-value.md)."""
    non_destructive: bool
    """Consuming takes nothing: each consumer sees all messages."""
    max_producer_bytes: int | str | None
    """A participant that holds more of the arena, in all queues, has no room in this one."""
    slow_consumer_threshold: float | None
    """Messages a second: who does less while others wait is slow; None: nobody is."""
    slow_consumer_policy: SlowPolicy
    auto_delete: bool
    """It is deleted when it is empty and nobody has used it for auto_delete_delay."""
    auto_delete_delay: float
    """Seconds."""
    redelivery_delay: float | None
    """What is given back, or comes from the dead, is delivered again after so many seconds."""
    redelivery_multiplier: float
    """Each time after so many times as long, 1 to 1000."""
    max_redelivery_delay: float | None
    max_scheduled: int
    """Messages that are not to be delivered yet; what comes back after a delay is one as well."""


class Settings(CommonSettings, total=False):
    durable: bool
    """A message is delivered, and confirmed, when it is in the journal; a broker writes that."""


class PatternSettings(Settings, total=False):
    auto_create: bool
    """Who asks for a queue that matches gets it, although nobody has declared it."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One setting of a queue, and where its value comes from."""

    value: Any
    source: str
    """'declared', "pattern 'orders.#'", or 'default'."""


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """Settings of queues that are declared later and match."""

    pattern: str
    settings: dict[str, Any]


def _count(name: str, value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"{name} is a positive number or None, not {value!r}")
    return min(value, 1 << 60)


def _number(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgument(f"{name} is a number from 0 up, not {value!r}")
    return min(value, 1 << 60)


def _time(name: str, value: Any) -> int:
    try:
        return ttl_ns(value)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from error


def _size(name: str, value: Any) -> int:
    if isinstance(value, str):
        try:
            value = parse_size(value)
        except ValueError as error:
            raise InvalidArgument(
                f"{name} is a size such as 65536 or '256MiB', not {value!r}"
            ) from error
    return _count(name, value)


def _factor(name: str, value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if 1 <= value <= MULTIPLIER_MAX / MULTIPLIER_UNIT:
            return round(value * MULTIPLIER_UNIT)
    most = MULTIPLIER_MAX // MULTIPLIER_UNIT
    raise InvalidArgument(f"{name} is a number from 1 to {most}, not {value!r}")


def _flag(name: str, value: Any) -> int:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} is True or False, not {value!r}")
    return int(value)


def _choice(name: str, asked: Mapping[str, Any], choices: Mapping[str, int]) -> int:
    value = asked[name]
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgument(f"{name} is {', '.join(choices)}, not {value!r}")
    return choices[value]


def _pace(value: Any) -> int:
    """How many nanoseconds a message may take at so many a second."""
    if value is None:
        return 0
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1e-6 <= value <= 1e9:
        raise InvalidArgument(
            "slow_consumer_threshold is a number of messages a second, from 0.000001 to a "
            f"thousand millions, or None; not {value!r}"
        )
    return round(1e9 / value)


def _levels(value: Any) -> int:
    if value is True:
        return LEVELS
    if isinstance(value, int) and 0 <= value <= LEVELS:
        return int(value)
    raise InvalidArgument(
        f"priorities is True, or a number of levels up to {LEVELS}, not {value!r}"
    )


def _buckets(value: Any) -> int:
    if value is True:
        return BUCKETS
    if isinstance(value, int) and 0 <= value <= BUCKETS:
        return int(value)
    raise InvalidArgument(f"groups is True, or a number of buckets up to {BUCKETS}, not {value!r}")


def for_c(given: Mapping[str, Any], known: Mapping[str, Any] = DEFAULTS) -> tuple[Any, Any]:
    """Settings for C, and what must live as long as they."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidArgument(
            f"a queue has no setting {unknown[0]!r}; there are {', '.join(sorted(known))}"
        )
    asked = {**known, **given}
    names = [
        ffi.NULL if name is None else ffi.new("char[]", name_bytes(name))
        for name in (asked["dead_letter"], asked["expiry_queue"])
    ]
    packed = pack({name: given[name] for name in sorted(given)}) if given else b""
    held = ffi.from_buffer(packed)
    made = ffi.new(
        "sb_settings *",
        {
            "max_deliveries": _deliveries(given),
            "ttl_ns": _time("ttl", asked["ttl"]),
            "ttl_min_ns": _time("ttl_min", asked["ttl_min"]),
            "ttl_max_ns": _time("ttl_max", asked["ttl_max"]),
            "max_messages": _count("max_messages", asked["max_messages"]),
            "max_bytes": _size("max_bytes", asked["max_bytes"]),
            "when_full": _choice("when_full", asked, WHEN_FULL),
            "priorities": _levels(asked["priorities"]),
            "duplicate_ids": _number("duplicate_ids", given.get("duplicate_ids", 0)),
            "groups": _buckets(asked["groups"]),
            "rebalance": _flag("rebalance", asked["rebalance"]),
            "single_active": _flag("single_active", asked["single_active"]),
            "last_value": _flag("last_value", asked["last_value"]),
            "non_destructive": _flag("non_destructive", asked["non_destructive"]),
            "max_producer_bytes": _size("max_producer_bytes", asked["max_producer_bytes"]),
            "slow_consumer_ns": _pace(asked["slow_consumer_threshold"]),
            "slow_consumer_policy": _choice("slow_consumer_policy", asked, SLOW_POLICY),
            "auto_delete": _flag("auto_delete", asked["auto_delete"]),
            "auto_delete_delay_ns": _time("auto_delete_delay", given.get("auto_delete_delay")),
            "auto_create": _flag("auto_create", asked.get("auto_create", False)),
            "durable": _flag("durable", asked["durable"]),
            "redelivery_delay_ns": _time("redelivery_delay", asked["redelivery_delay"]),
            "redelivery_multiplier": _factor(
                "redelivery_multiplier", given.get("redelivery_multiplier")
            ),
            "max_redelivery_delay_ns": _time("max_redelivery_delay", asked["max_redelivery_delay"]),
            "max_scheduled": _count("max_scheduled", given.get("max_scheduled")),
            "dead_letter": names[0],
            "expiry_queue": names[1],
            "given": held,
            "given_length": len(packed),
            "set": sum(1 << bit for bit, name in enumerate(SETTING_NAMES) if name in given),
        },
    )
    return made, (names, held, packed)


def _deliveries(given: Mapping[str, Any]) -> int:
    if "max_deliveries" not in given:
        return 0
    if given["max_deliveries"] is None:
        unlimited: int = lib.SB_UNLIMITED
        return unlimited
    return _count("max_deliveries", given["max_deliveries"])


def explained(packed: bytes) -> dict[str, Explained]:
    """What each setting of a queue is, from what was noted when it was declared."""
    found = {name: Explained(value, "default") for name, value in DEFAULTS.items()}
    declared, *inherited = unpack_all(packed) or [{}]
    for pattern, bits, settings in zip(*[iter(inherited)] * 3, strict=True):
        for bit, name in enumerate(SETTING_NAMES):
            if bits >> bit & 1:
                found[name] = Explained(settings.get(name), f"pattern {pattern!r}")
    found |= {name: Explained(value, "declared") for name, value in declared.items()}
    if found["non_destructive"].value and found["when_full"].source == "default":
        found["when_full"] = Explained("drop-oldest", "default")  # settings.c
    keeps = found["last_value"].value or found["non_destructive"].value
    if (keeps or found["when_full"].value == "page") and found["duplicate_ids"].source == "default":
        found["duplicate_ids"] = Explained(0, "default")
    return found
