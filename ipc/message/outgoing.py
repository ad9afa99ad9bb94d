"""A message to be published, as C takes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict

from shmbroker.core.layout import KEY_BYTES_MAX
from shmbroker.ipc._native import ffi
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.confirm import Confirm
from shmbroker.ipc.message.group import grouped
from shmbroker.ipc.message.properties import pack

SECONDS_MAX = 1e9
ID_BYTES_MAX = 255


def as_buffer(body: Any) -> Any:
    """The memory of a body, where it is: bytes, a bytearray, an array, a view."""
    if isinstance(body, str):
        raise InvalidArgument("a body is bytes or another buffer, not text: encode it")
    try:
        return ffi.from_buffer(body)
    except (TypeError, BufferError, ValueError) as error:
        raise InvalidArgument(f"a body is bytes or another contiguous buffer: {error}") from error


def key_bytes(key: str | None) -> bytes:
    if key is None:
        return b""
    if not isinstance(key, str):
        raise InvalidArgument(f"a key is text, not {type(key).__name__}")
    encoded = key.encode(errors="surrogatepass")
    if len(encoded) > KEY_BYTES_MAX:
        raise InvalidArgument(f"a key has at most {KEY_BYTES_MAX} bytes, not {len(encoded)}")
    return encoded


def ttl_ns(ttl: Seconds | None) -> int:
    """For how long a message may be delivered, for C."""
    if ttl is None:
        return 0
    try:
        if 0 < ttl <= SECONDS_MAX:  # type: ignore[operator]  # a timedelta is rare
            return max(1, int(ttl * 1e9))  # type: ignore[arg-type]
    except TypeError:
        if isinstance(ttl, timedelta):
            return ttl_ns(ttl.total_seconds())
    raise InvalidArgument(
        f"a ttl is a number of seconds above 0 or a timedelta, at most {SECONDS_MAX:g}, not {ttl!r}"
    )


def priority_code(priority: int | None) -> int:
    """A priority for C, where 0 is the default one."""
    if priority is None:
        return 0
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= 9:
        raise InvalidArgument(f"a priority is a number from 0 to 9, not {priority!r}")
    return priority + 1


class Options(TypedDict, total=False):
    """What may be said of a message that is published.

    Taken as **options, because a parameter that is left out costs a call more than one dictionary
    for all of them: most messages have none.
    """

    key: str | None
    properties: Mapping[str, Any] | None
    ttl: Seconds | None
    """It may be delivered for so many seconds."""
    priority: int | None
    """0 to 9."""
    group: str | None
    """In a queue with groups, messages of one go to one consumer at a time (docs/groups.md)."""
    confirm: Confirm | None
    """In a durable queue: the level to wait for, "shm" not to wait (docs/durability.md)."""
    deliver_after: Seconds | None
    """It is not delivered before so many seconds (docs/scheduled.md)."""
    deliver_at: datetime | float | None
    """Nor before this time of day; a number is in seconds since 1970."""


class OptionsWithId(Options, total=False):
    message_id: str | bytes | None
    """It is published once, however often it is tried (docs/duplicates.md)."""


def id_bytes(message_id: str | bytes | None, what: str = "a message_id") -> tuple[bytes, int]:
    """An id for C, and its length: of one that is no text below 0."""
    if message_id is None:
        return b"", 0
    if isinstance(message_id, str):
        encoded, sign = message_id.encode(errors="surrogatepass"), 1
    elif isinstance(message_id, bytes):
        encoded, sign = message_id, -1
    else:
        raise InvalidArgument(f"{what} is text or bytes, not {type(message_id).__name__}")
    if not 1 <= len(encoded) <= ID_BYTES_MAX:
        raise InvalidArgument(f"{what} has 1 to {ID_BYTES_MAX} bytes, not {len(encoded)}")
    return encoded, sign * len(encoded)


Parts = tuple[Any, int, bytes, int, bytes, int, int, int]
PartsWithId = tuple[Any, int, bytes, int, bytes, int, int, int, bytes, int]


def parts(
    body: Any,
    key: str | None = None,
    properties: Mapping[str, Any] | None = None,
    ttl: Seconds | None = None,
    priority: int | None = None,
    group: str | None = None,
) -> Parts:
    """A message as arguments for C."""
    properties = grouped(properties, group)
    named = b"" if key is None else key_bytes(key)
    packed = pack(properties) if properties else b""
    held = body if type(body) is bytes else as_buffer(body)
    lives = ttl_ns(ttl) if ttl is not None else 0
    level = priority_code(priority) if priority is not None else 0
    return held, len(held), named, len(named), packed, len(packed), lives, level


def outgoing(
    body: Any,
    key: str | None = None,
    properties: Mapping[str, Any] | None = None,
    ttl: Seconds | None = None,
    priority: int | None = None,
    message_id: str | bytes | None = None,
    group: str | None = None,
) -> tuple[Any, tuple[Any, ...]]:
    """A message for C, and what must live as long as it."""
    properties = grouped(properties, group)
    held, named, packed = as_buffer(body), key_bytes(key), pack(properties)
    held_key, held_properties = ffi.from_buffer(named), ffi.from_buffer(packed)
    message = ffi.new("sb_outgoing *")
    message.body, message.length = held, len(held)
    message.key, message.key_length = held_key, len(named)
    message.properties, message.properties_length = held_properties, len(packed)
    message.ttl_ns, message.priority = ttl_ns(ttl), priority_code(priority)
    known, message.id_length = id_bytes(message_id)
    message.id = held_id = ffi.from_buffer(known)
    return message, (held, held_key, held_properties, held_id)
