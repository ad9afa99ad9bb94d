"""Settings of a queue: how it treats its messages, part of what it is declared as.

What is left out comes from the patterns that match the queue's name, or is as in DEFAULTS.  C
checks numbers and names (ipc/catalog/settings.c); here is what people write turned into
what C wants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, get_args

from shmbroker.core.layout import MULTIPLIER_MAX, MULTIPLIER_UNIT, REPLICATE_UNSAID
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.names import OWN, name_bytes
from shmbroker.ipc.base.pattern import MANY, ONE, matches
from shmbroker.ipc.base.units import parse_size
from shmbroker.ipc.message.outgoing import ttl_ns
from shmbroker.ipc.message.properties import pack, unpack_all
from shmbroker.ipc.settings.setting import (
    BY_NAME,
    DEFAULTS,
    REPLICATE,
    SETTINGS,
    Replicate,
    Setting,
)


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


def _choice(name: str, value: Any, choices: Mapping[str, int]) -> int:
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgument(f"{name} is {', '.join(choices)}, not {value!r}")
    return choices[value]


def _pace(name: str, value: Any) -> int:
    """How many nanoseconds a message may take at so many a second."""
    if value is None:
        return 0
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 1e-6 <= value <= 1e9:
        raise InvalidArgument(
            f"{name} is a number of messages a second, from 0.000001 to a thousand millions, or "
            f"None; not {value!r}"
        )
    return round(1e9 / value)


def _up_to(name: str, value: Any, most: int, noun: str) -> int:
    if value is True:
        return most
    if isinstance(value, int) and 0 <= value <= most:
        return int(value)
    raise InvalidArgument(f"{name} is True, or a number of {noun} up to {most}, not {value!r}")


def for_c(given: Mapping[str, Any], known: Mapping[str, Any] = DEFAULTS) -> tuple[Any, Any]:
    """Settings for C, and what must live as long as they."""
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidArgument(
            f"a queue has no setting {unknown[0]!r}; there are {', '.join(sorted(known))}"
        )
    given = {
        name: each.total_seconds() if isinstance(each, timedelta) else each
        for name, each in given.items()
    }
    packed = pack({name: given[name] for name in sorted(given)}) if given else b""
    held = ffi.from_buffer(packed)
    fields = {BY_NAME[name].field: for_field(BY_NAME[name], given[name]) for name in given}
    bits = sum(BY_NAME[name].bit for name in given)
    rest = {"given": held, "given_length": len(packed), "set": bits}
    return ffi.new("sb_settings *", fields | rest), (fields, held, packed)


def for_field(setting: Setting, value: Any) -> Any:
    """The value of a setting, as struct sb_settings has it."""
    name = setting.name
    match setting.kind:
        case "count":
            if value is None and name == "max_deliveries":
                return lib.SB_UNLIMITED
            return _count(name, value)
        case "queue":
            return ffi.NULL if value is None else ffi.new("char[]", name_bytes(value))
        case "seconds":
            return 1 if setting.is_at_once_at_0 and value == 0 else _time(name, value)
        case "size":
            return _size(name, value)
        case "flag":
            return _flag(name, value)
        case "choice":
            return _choice(name, value, setting.choices)
        case "levels" | "buckets":
            return _up_to(name, value, setting.most, setting.kind)
        case "factor":
            return _factor(name, value)
        case "number":
            return _number(name, value)
        case "rate":
            return _pace(name, value)


def replicate_name(number: int) -> Replicate:
    """What is not said is nothing: no member has the vhost."""
    names: tuple[Replicate, ...] = get_args(Replicate)
    return names[number] if number < len(names) else "none"


def replicate_number(name: Replicate | None) -> int:
    """For C, of an exchange; None: as its broker has it."""
    return REPLICATE_UNSAID if name is None else _choice("replicate", name, REPLICATE)


def by_rank(patterns: Iterable[Pattern], name: str) -> tuple[Pattern, ...]:
    """Those that match, the most specific first, as C has them (ipc/catalog/pattern.c)."""
    return tuple(sorted((each for each in patterns if _is_for(each.pattern, name)), key=_rank))


def _is_for(pattern: str, name: str) -> bool:
    """The broker's own queues are as it declares them, but for what is said of them by name."""
    return matches(pattern, name) and (not name.startswith(OWN) or pattern.startswith(OWN))


def _rank(of: Pattern) -> tuple[bool, int, int, int, bytes]:
    words = of.pattern.split(".")
    stars, hashes = words.count(ONE), words.count(MANY)
    literal = len(words) - stars - hashes
    return stars + hashes > 0, -literal, hashes, -stars, of.pattern.encode()


def explained(packed: bytes) -> dict[str, Explained]:
    """What each setting of a queue is, from what was noted when it was declared."""
    found = {name: Explained(value, "default") for name, value in DEFAULTS.items()}
    declared, *inherited = unpack_all(packed) or [{}]
    for pattern, bits, settings in zip(*[iter(inherited)] * 3, strict=True):
        for each in SETTINGS:
            if bits & each.bit:
                found[each.name] = Explained(settings.get(each.name), f"pattern {pattern!r}")
    found |= {name: Explained(value, "declared") for name, value in declared.items()}
    if found["non_destructive"].value and found["when_full"].source == "default":
        found["when_full"] = Explained("drop-oldest", "default")  # settings.c
    keeps = found["last_value"].value or found["non_destructive"].value
    if (keeps or found["when_full"].value == "page") and found["duplicate_ids"].source == "default":
        found["duplicate_ids"] = Explained(0, "default")
    return found
