"""The kinds of records of the journal.  Its files know three, SEGMENTS and those that are kept as
long as their position is not retired, MESSAGE and IDS; bodies are bytes to them."""

from __future__ import annotations

from typing import Final

SEGMENTS: Final = 0
"""Which segments are needed, and where each ends: the journal's own, written by itself."""
MESSAGE: Final = 1
"""A chunk, at its queue's position."""
RETIRED: Final = 2
"""All below the position are retired; bit i of the body: so is position + i."""
QUEUE: Final = 3
"""A queue is declared."""
QUEUE_GONE: Final = 4
"""A queue is deleted, with all that is in it."""
CATALOG: Final = 5
"""An exchange, a binding, settings of a pattern, …"""
UNPLACED: Final = 6
"""A chunk that a committed transaction has still to publish to its queue, for want of room; without
a body: the one with this position has its place, or is not needed.  A segment begins with those
that are left, behind QUEUES."""
IDS: Final = 7
"""Message ids that a queue remembers, up to the serial that is the position; kept by the queue's
number with the sign bit."""
PRODUCERS: Final = 8
"""The numbered producers of a queue, and the last number of each."""
QUEUES: Final = 9
"""The numbers of all durable queues, 8 bytes each, at one moment: no other is there, whatever was
declared before.  So the segment that says that one was deleted need not be kept."""
ORIGINS: Final = 10
"""Streams from elsewhere: entries in a queue's table of origins, and the last number of each."""
COPIED: Final = 11
"""The frame that has it repeats this frame of another journal (sb_place)."""
STANDING: Final = 12
"""Which member of a replicated node is live, in which epoch, and who is in sync: bytes to C.  The
newest holds, and each segment begins with it."""

KINDS_MAX: Final = 255
"""Others are free."""
