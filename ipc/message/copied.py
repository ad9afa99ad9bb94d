"""A message that was copied, not taken: what browsing and subscribing show."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from struct import Struct
from typing import Any, Self

from shmbroker.core.layout import (
    CHUNK_EXPIRY_AT,
    CHUNK_EXTENDED,
    CHUNK_EXTENSION_BYTES,
    CHUNK_HEADER_BYTES,
    CHUNK_ONCE,
    CHUNK_ONCE_BYTES,
    DELIVERIES_MASK,
    DELIVERIES_SHIFT,
    LEASED,
    MARK_DELIVERIES_MASK,
    MARK_FLAGS_MASK,
    MARK_FLAGS_SHIFT,
    MARK_PRIORITY_MASK,
    MARK_PRIORITY_SHIFT,
    OWNER_MASK,
    OWNER_SHIFT,
    SHAPE_KEY_SHIFT,
    SHAPE_LENGTH_MASK,
    STATE_MASK,
    STATE_SHIFT,
)
from shmbroker.ipc.message.group import group_of
from shmbroker.ipc.message.properties import message_id_in, readable, unpack

_WORD = Struct("<q")
_HEADER = Struct("<qqqq")  # shape, origin, published, mark


def deliveries_of(word: int, mark: int) -> int:
    """How often a message was delivered before: in this slot, and before it came there."""
    here = (word >> DELIVERIES_SHIFT) & DELIVERIES_MASK
    return min(here + (mark & MARK_DELIVERIES_MASK), DELIVERIES_MASK)


def holder_of(word: int) -> int | None:
    """The participant that has taken what is in this slot."""
    is_taken = (word >> STATE_SHIFT) & STATE_MASK == LEASED
    return (word >> OWNER_SHIFT) & OWNER_MASK if is_taken else None


def priority_of(mark: int) -> int | None:
    """None: it was published without one."""
    level = (mark >> MARK_PRIORITY_SHIFT) & MARK_PRIORITY_MASK
    return level - 1 if level else None


def has_expiry(mark: int) -> bool:
    """Whether the chunk has the word at CHUNK_EXPIRY_AT."""
    return bool((mark >> MARK_FLAGS_SHIFT) & CHUNK_EXTENDED)


def time_of(expiry: int) -> datetime | None:
    """Monotonic nanoseconds of this boot as a time of day, by the clock of now; 0 is never."""
    if expiry == 0:
        return None
    try:
        seconds = (time.time_ns() + expiry - time.monotonic_ns()) / 1e9
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):  # a ttl of centuries
        return None


@dataclass(frozen=True, slots=True)
class CopiedMessage:
    """What a message was when it was looked at."""

    position: int
    body: bytes
    key: str | None
    properties: dict[str, Any] = field(hash=False)
    published_at: int
    deliveries: int
    is_taken: bool
    priority: int | None = None
    """None: it was published without one."""
    expires_ns: int = 0
    """When it expires, in monotonic nanoseconds of this boot; 0: never."""
    is_confirmed: bool = True
    """False: in memory, and not on disk yet, of a durable queue.  It may be gone after a crash."""
    taken_by: int | None = None
    """The participant that has it, if it is taken; None: nobody, or a broker did not say."""
    unreadable: bytes = b""
    """Its properties as they came, if nobody can read them; then `properties` is empty."""

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, in UTC by the clock of now; None: never."""
        return time_of(self.expires_ns)

    @property
    def redelivered(self) -> bool:
        """It was delivered before."""
        return self.deliveries > 0

    @property
    def message_id(self) -> str | bytes | None:
        """The id that it was published with."""
        return message_id_in(self.properties)

    @property
    def group(self) -> str | None:
        """The group that it was published with."""
        return group_of(self.properties)

    def read(self) -> dict[str, Any]:
        """Its properties; InvalidArgument if they cannot be read."""
        return unpack(self.unreadable) or self.properties

    @classmethod
    def of(
        cls, position: int, word: int, body_length: int, chunk: bytes, is_confirmed: bool = True
    ) -> Self:
        """From the copy of a whole chunk, up to the end of the body."""
        shape, _origin, published, mark = _HEADER.unpack_from(chunk)
        start = CHUNK_HEADER_BYTES
        expiry = 0
        flags = (mark >> MARK_FLAGS_SHIFT) & MARK_FLAGS_MASK
        if flags & CHUNK_ONCE:
            start += CHUNK_ONCE_BYTES
        if flags & CHUNK_EXTENDED:
            start += CHUNK_EXTENSION_BYTES
            (expiry,) = _WORD.unpack_from(chunk, CHUNK_EXPIRY_AT)
        key_end = start + ((shape >> SHAPE_KEY_SHIFT) & SHAPE_LENGTH_MASK)
        properties_end = key_end + (shape & SHAPE_LENGTH_MASK)
        holder = holder_of(word)
        properties, unreadable = readable(chunk[key_end:properties_end])
        return cls(
            position=position,
            body=chunk[len(chunk) - body_length :],
            key=chunk[start:key_end].decode(errors="replace") or None,
            properties=properties,
            published_at=published,
            deliveries=deliveries_of(word, mark),
            is_taken=holder is not None,
            priority=priority_of(mark),
            expires_ns=expiry,
            is_confirmed=is_confirmed,
            taken_by=holder,
            unreadable=unreadable,
        )
