"""Settings, messages and selectors by chance, all of them legal."""

from __future__ import annotations

from random import Random
from typing import Any

from shmbroker.core.layout import MAX_DELIVERIES
from tests.support.settings_model.message import AT_ONCE, NOT_TODAY, SELECTORS
from tests.support.settings_model.queue import SCHEDULED

GROUPS = ["a1", "a2", "b1", "b2"]
PATTERNS = ["#", "a.*", "*.b", "a.b"]
KEYS = ["a", "a.b", "b.b", "a.c"]
KINDS: list[dict[str, list[Any]]] = [
    {},
    {"priorities": [2, 10]},
    {"priorities": [2, 5]},
    {"groups": [1, 2, 256]},
    {"groups": [1, 2, 256], "rebalance": [False, True]},
    {"single_active": [True], "rebalance": [False, True]},
    {"last_value": [True]},
    {"last_value": [True], "priorities": [2, 10]},
    {"non_destructive": [True]},
    {"non_destructive": [True], "last_value": [True]},
]
LIMITS: list[dict[str, Any]] = [
    {},
    {},
    {"max_messages": 1},
    {"max_messages": 3},
    {"max_messages": 20},
]
LIVES: list[dict[str, Any]] = [
    *[{}] * 6,
    {"ttl": AT_ONCE},
    {"ttl": NOT_TODAY},
    {"ttl_min": NOT_TODAY},
    {"ttl_max": NOT_TODAY},
    {"ttl": NOT_TODAY, "ttl_max": AT_ONCE},
]
BYTES: list[dict[str, Any]] = [{"max_bytes": 4096}, {"max_producer_bytes": 20480}]


def some_settings(random: Random) -> dict[str, Any]:
    made: dict[str, Any] = {"max_scheduled": SCHEDULED}
    made |= {name: random.choice(values) for name, values in random.choice(KINDS).items()}
    made |= random.choice(LIMITS) | random.choice(LIVES)
    made["when_full"] = random.choice(["block", "fail", "drop-oldest"])
    is_kept, is_last = "non_destructive" in made, "last_value" in made
    if is_kept and made["when_full"] == "block":
        made["ttl_max"] = NOT_TODAY
    if not is_kept and random.random() < 0.7:
        made["max_deliveries"] = random.choice([None, 1, 2, 3, MAX_DELIVERIES])
    if not is_kept and not is_last:
        if random.random() < 0.3:
            made["redelivery_delay"] = NOT_TODAY
        if random.random() < 0.8:
            made["duplicate_ids"] = random.choice([0, 1, 2, 3])
    if made["when_full"] != "drop-oldest" and not is_last and random.random() < 0.2:
        made |= random.choice(BYTES)
        made.pop("redelivery_delay", None)
    return made


def dlq_settings(random: Random) -> dict[str, Any]:
    """Of a queue for what is dead: it has room for all, for ever."""
    kind = random.choice([kind for kind in KINDS if "non_destructive" not in kind])
    made = {name: random.choice(values) for name, values in kind.items()}
    return made | {"max_deliveries": None, "max_scheduled": SCHEDULED}


def some_options(random: Random) -> dict[str, Any]:
    """Of publish, but for an id."""
    made: dict[str, Any] = {}
    if random.random() < 0.7:
        made["key"] = f"k{random.randrange(4)}"
    if random.random() < 0.5:
        made["priority"] = random.randrange(10)
    if random.random() < 0.6:
        made["properties"] = {"n": random.randrange(1, 4)}
    if random.random() < 0.6:
        made["group"] = random.choice(GROUPS)
    if random.random() < 0.25:
        made["ttl"] = random.choice([AT_ONCE, NOT_TODAY])
    return made


def some_id(random: Random) -> str | None:
    return f"i{random.randrange(5)}" if random.random() < 0.4 else None


def some_selector(random: Random) -> str | None:
    return random.choice([None, *SELECTORS])
