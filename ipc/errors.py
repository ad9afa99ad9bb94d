"""Everything that can go wrong, as one tree, and which code of a kernel means what."""

from __future__ import annotations

import os

from shmbroker.core import codes


class Error(Exception):
    """The base of all errors of shmbroker."""


class Empty(Error):
    """There is nothing to take."""


class QueueFull(Error):
    """The ring is full; nothing was published."""


class DeliveryRevoked(Error):
    """The message is no longer ours: the lease ran out, or we were taken for dead."""


class MessageGone(Error):
    """The message at this position has been recycled."""


class ArenaFull(Error):
    """The memory for messages is exhausted; nothing was published."""


class MessageTooLarge(Error):
    """The message is larger than a quarter of the arena."""


class Damaged(Error):
    """The shared memory contradicts itself: something else has written into it."""


class InvalidArgument(Error, ValueError):
    """An argument is out of range."""


class NotASegment(Error):
    """This is no segment of shmbroker, or one that cannot be used."""


class SegmentExists(Error):
    """A segment of this name exists already."""


class NotFound(Error):
    """The catalog has no such queue, exchange or binding."""


class CatalogFull(Error):
    """The catalog has no room for one more queue, exchange or binding."""


class SystemRefused(Error):
    """The operating system refused something; the text says what."""


ERRORS: dict[int, type[Error]] = {
    codes.EMPTY: Empty,
    codes.FULL: QueueFull,
    codes.REVOKED: DeliveryRevoked,
    codes.GONE: MessageGone,
    codes.ARENA_FULL: ArenaFull,
    codes.TOO_LARGE: MessageTooLarge,
    codes.DUPLICATE: InvalidArgument,
    codes.DAMAGED: Damaged,
    codes.INVALID: InvalidArgument,
    codes.NO_GATE: InvalidArgument,
    codes.NO_PRODUCER: InvalidArgument,
    codes.TOO_SMALL: InvalidArgument,
    codes.NOT_A_SEGMENT: NotASegment,
    codes.OTHER_VERSION: NotASegment,
    codes.TRUNCATED: NotASegment,
    codes.WRONG_ARENA: NotASegment,
    codes.SYSTEM: SystemRefused,
    codes.EXISTS: SegmentExists,
    codes.NO_MEMORY: ArenaFull,
    codes.NEEDS_COMMIT: ArenaFull,
    codes.TOO_MANY_LOANS: ArenaFull,
    codes.NOT_FOUND: NotFound,
    codes.TABLE_FULL: CatalogFull,
}


def error_for(code: int, what: str, errno: int = 0) -> Error:
    """The exception for a code; `what` says which object was meant."""
    text = f"{what}: {codes.TEXTS[code]}"
    if code == codes.SYSTEM:
        text = f"{what}: {os.strerror(errno)}"
    return ERRORS[code](text)


assert set(ERRORS) | {codes.OK} == set(codes.TEXTS)
