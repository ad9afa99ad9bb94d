"""Settings of a queue: how it treats its messages, part of what it is declared as.

What is left out is as in DEFAULTS.  C checks numbers and names (native/settings.c); here is what
people write turned into what C wants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict

from shmbroker.core.layout import BLOCK, DROP_OLDEST, FAIL, MAX_DELIVERIES
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.errors import InvalidArgument
from shmbroker.ipc.names import name_bytes
from shmbroker.ipc.outgoing import ttl_ns
from shmbroker.ipc.properties import pack, unpack
from shmbroker.ipc.units import parse_size

WhenFull = Literal["block", "fail", "drop-oldest"]
WHEN_FULL: Final[dict[str, int]] = {"block": BLOCK, "fail": FAIL, "drop-oldest": DROP_OLDEST}


class Settings(TypedDict, total=False):
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


DEFAULTS: Final[Settings] = {
    "max_deliveries": MAX_DELIVERIES,
    "dead_letter": None,
    "ttl": None,
    "ttl_min": None,
    "ttl_max": None,
    "expiry_queue": None,
    "max_messages": None,
    "max_bytes": None,
    "when_full": "block",
}


@dataclass(frozen=True, slots=True)
class Explained:
    """One setting of a queue, and where its value comes from."""

    value: Any
    source: str


def _count(name: str, value: Any) -> int:
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidArgument(f"{name} is a positive number or None, not {value!r}")
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


def for_c(given: Settings) -> tuple[Any, tuple[Any, ...]]:
    """Settings for C, and what must live as long as they."""
    unknown = sorted(set(given) - set(DEFAULTS))
    if unknown:
        raise InvalidArgument(
            f"a queue has no setting {unknown[0]!r}; there are {', '.join(sorted(DEFAULTS))}"
        )
    asked: Settings = {**DEFAULTS, **given}
    when_full = asked["when_full"]
    if when_full not in WHEN_FULL:
        raise InvalidArgument(f"when_full is {', '.join(WHEN_FULL)}, not {when_full!r}")
    names = [
        ffi.NULL if name is None else ffi.new("char[]", name_bytes(name))
        for name in (asked["dead_letter"], asked["expiry_queue"])
    ]
    packed = pack({name: given[name] for name in sorted(given)}) if given else b""  # type: ignore[literal-required]
    held = ffi.from_buffer(packed)
    deliveries = asked["max_deliveries"]
    made = ffi.new(
        "sb_settings *",
        {
            "max_deliveries": lib.SB_UNLIMITED
            if deliveries is None
            else _count("max_deliveries", deliveries),
            "ttl_ns": _time("ttl", asked["ttl"]),
            "ttl_min_ns": _time("ttl_min", asked["ttl_min"]),
            "ttl_max_ns": _time("ttl_max", asked["ttl_max"]),
            "max_messages": _count("max_messages", asked["max_messages"]),
            "max_bytes": _size("max_bytes", asked["max_bytes"]),
            "when_full": WHEN_FULL[when_full],
            "dead_letter": names[0],
            "expiry_queue": names[1],
            "given": held,
            "given_length": len(packed),
        },
    )
    return made, (names, held, packed)


def explained(packed: bytes) -> dict[str, Explained]:
    """What each setting of a queue is, from what was given when it was declared."""
    given = unpack(packed) if packed else {}
    return {
        name: Explained(given[name], "declared") if name in given else Explained(default, "default")
        for name, default in DEFAULTS.items()
    }
