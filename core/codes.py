"""What a kernel answers when it did not do what was asked: negative numbers, and their texts."""

from __future__ import annotations

from typing import Final

OK: Final = 0
EMPTY: Final = -1
FULL: Final = -2
REVOKED: Final = -3
GONE: Final = -4
ARENA_FULL: Final = -5
TOO_LARGE: Final = -6
DUPLICATE: Final = -7
DAMAGED: Final = -8
INVALID: Final = -9
NO_GATE: Final = -10
NO_PRODUCER: Final = -11
TOO_SMALL: Final = -12
NEEDS_COMMIT: Final = -13
NOT_A_SEGMENT: Final = -14
OTHER_VERSION: Final = -15
TRUNCATED: Final = -16
WRONG_ARENA: Final = -17
SYSTEM: Final = -18
EXISTS: Final = -19
NO_MEMORY: Final = -20
TOO_MANY_LOANS: Final = -21
NOT_FOUND: Final = -22
TABLE_FULL: Final = -23

TEXTS: Final[dict[int, str]] = {
    OK: "done",
    EMPTY: "there is nothing to take",
    FULL: "the ring is full: its oldest message is unacknowledged or a gate has not passed it",
    REVOKED: "the delivery was revoked: the lease ran out or we were taken for dead",
    GONE: "the message at this position has been recycled",
    ARENA_FULL: "the arena is exhausted: take and acknowledge messages, or make it larger",
    TOO_LARGE: "the message is larger than a quarter of the arena",
    DUPLICATE: "this sequence number was published before: the second copy is dropped",
    DAMAGED: "the shared memory contradicts itself: something else has written into it",
    INVALID: "an argument is out of range",
    NO_GATE: "all gates of this ring are taken",
    NO_PRODUCER: "the table of numbered producers of this ring is full",
    TOO_SMALL: "the buffer is smaller than the message",
    NEEDS_COMMIT: "the arena needs more memory behind it",
    NOT_A_SEGMENT: "not a shmbroker segment: the magic number is missing",
    OTHER_VERSION: "the segment has another layout version: use the shmbroker that made it",
    TRUNCATED: "the segment is shorter than its header says",
    WRONG_ARENA: "the ring belongs to another arena",
    SYSTEM: "the system refused: see errno",
    EXISTS: "a segment of this name exists: attach to it, or remove it first",
    NO_MEMORY: "/dev/shm is full: free some of it, or mount it larger",
    TOO_MANY_LOANS: "too many loaned chunks: publish or drop some of them first",
    NOT_FOUND: "the catalog has no such queue, exchange or binding",
    TABLE_FULL: "the catalog has no room for one more: remove some first",
}

assert sorted(TEXTS) == list(range(TABLE_FULL, OK + 1))
