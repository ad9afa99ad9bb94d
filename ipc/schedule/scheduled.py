"""Scheduled messages: the time of delivery as C takes it, and the messages as C returns them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from struct import Struct
from typing import TYPE_CHECKING, Any

from shmbroker.core.codes import OK
from shmbroker.core.layout import (
    CHUNK_HEADER_BYTES,
    CHUNK_NOT_BEFORE_AT,
    SCHEDULED_BYTES,
    SCHEDULED_ID_AT,
    SCHEDULED_TIME_AT,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument
from shmbroker.ipc.base.timeout import Seconds
from shmbroker.ipc.message.copied import CopiedMessage
from shmbroker.ipc.message.outgoing import SECONDS_MAX

if TYPE_CHECKING:
    from shmbroker.ipc.queue.opened import OpenedQueue

_WORD = Struct("<q")
EPOCH = datetime.fromtimestamp(0, UTC)

When = datetime | float
"""A time of day: a datetime, or seconds since the epoch."""


def delay_ns(delay: Seconds) -> int:
    """A delay for C, 0 for none."""
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    if isinstance(delay, (int, float)) and not isinstance(delay, bool):
        if 0 <= delay <= SECONDS_MAX:
            return int(delay * 1e9)
    raise InvalidArgument(
        f"deliver_after is a number of seconds or a timedelta, from 0 to {SECONDS_MAX:g} s, "
        f"not {delay!r}"
    )


def time_ns(when: When) -> int:
    """A time of day for C, in nanoseconds since the epoch."""
    try:
        seconds = when.timestamp() if isinstance(when, datetime) else when
        if not isinstance(seconds, bool) and isfinite(seconds) and seconds >= 0:
            if seconds - time.time() <= SECONDS_MAX:
                return max(1, int(seconds * 1e9))
    except (TypeError, OverflowError, OSError, ValueError):
        pass
    raise InvalidArgument(
        f"deliver_at is a datetime, or seconds since 1970, at most {SECONDS_MAX:g} s from now, "
        f"not {when!r}"
    )


def due_ns(deliver_after: Seconds | None, deliver_at: When | None) -> tuple[int | None, int | None]:
    """For C: the delay, and the time of day; one of them at most."""
    if deliver_after is not None and deliver_at is not None:
        raise InvalidArgument("a message has deliver_after or deliver_at, not both")
    after = None if deliver_after is None else delay_ns(deliver_after)
    return after, None if deliver_at is None else time_ns(deliver_at)


def schedule(message: Any, deliver_after: Seconds | None, deliver_at: When | None) -> None:
    """Note in a message for C when it is to be delivered."""
    after, at = due_ns(deliver_after, deliver_at)
    if after is not None:
        message.delay_ns = after
    if at is not None:
        message.deliver_at_ns = at


@dataclass(frozen=True, slots=True)
class ScheduledMessage(CopiedMessage):
    """A message that is not to be delivered yet.  `position` is that in the schedule."""

    id: int = 0
    """What publish answered; for Queue.cancel_scheduled."""
    deliver_at: datetime = EPOCH
    """By the clock of now, if it is due after a delay."""


def _read(message: CopiedMessage, chunk: bytes) -> ScheduledMessage | None:
    """None if it is none: the memory is damaged."""
    body = message.body
    if len(body) < SCHEDULED_BYTES or len(chunk) < CHUNK_NOT_BEFORE_AT + CHUNK_HEADER_BYTES:
        return None
    (number,) = _WORD.unpack_from(body, SCHEDULED_ID_AT)
    (at_ns,) = _WORD.unpack_from(body, SCHEDULED_TIME_AT)
    if at_ns == 0:
        (not_before,) = _WORD.unpack_from(chunk, CHUNK_NOT_BEFORE_AT)
        at_ns = time.time_ns() + not_before - time.monotonic_ns()
    try:
        at = datetime.fromtimestamp(at_ns / 1e9, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    fields = {name: getattr(message, name) for name in CopiedMessage.__slots__}
    fields["body"] = body[SCHEDULED_BYTES:]
    return ScheduledMessage(**fields, id=number, deliver_at=at)


def id_of(queue: OpenedQueue, code: int, receipt: Any) -> int:
    """What publishing answered, if it is an id; 0: it was due, and this is a position."""
    ring = ffi.new("sb_queue **")
    is_scheduled = lib.sb_schedule(queue._queue, ring) == OK and ring[0] == receipt.queue
    return code if is_scheduled else 0


def ring_of(queue: OpenedQueue) -> Any:
    """The ring that a queue's scheduled messages are in, for C; None if there is none."""
    ring = ffi.new("sb_queue **")
    code = lib.sb_schedule(queue._queue, ring)
    if code != OK:
        raise queue._error(code, "the schedule of")
    return queue._broker._handles.shared(ring[0]) if ring[0] else None


def scheduled(copies: Iterator[tuple[CopiedMessage, bytes]]) -> list[ScheduledMessage]:
    """From copies of what is in the ring: what is due first comes first.

    One that was published anew while we looked is there twice.
    """
    found = {read.id: read for copy in copies if (read := _read(*copy))}
    return sorted(found.values(), key=lambda each: (each.deliver_at, each.id))
