"""The messages of a run: what each sender sends, so that every receiver can check it.

    byte   0               4               8                              size
           +---------------+---------------+---- ... --------------------+
           | index (u32 LE)| sender (u32)  | pattern, rotated by the stamp|
           +---------------+---------------+---- ... --------------------+
           |<-- stamp: one i64, little endian -->|

Message number i of a sender is message ``i % period``, made before the clock starts: making
messages is not what is measured. In mode ``loan`` only index 0 is written and compared in
full; of all others the sender writes, and the receiver reads, nothing but the stamp.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shmbroker.perf.harness.task import Mode
from shmbroker.perf.machine.size import STAMP_BYTES

PERIOD_MAX = 1024
PERIOD_MIN = 4
POOL_BYTES = 256 << 10
"""The pool of small messages should stay in the second-level cache."""

STOP = b"\xff" * STAMP_BYTES
"""Sent to competing receivers when there is no more. Told from others by its length, 8."""

_STAMP = struct.Struct("<q")
_PATTERN = bytes(range(251))


@dataclass(frozen=True, slots=True)
class Payload:
    """All messages that can occur in a run of this size and mode."""

    size: int
    mode: Mode

    @property
    def period(self) -> int:
        """How many different messages a sender has; a power of two."""
        if self.mode == "loan":
            return PERIOD_MAX
        fitting = 1 << max(POOL_BYTES // self.size, 1).bit_length() - 1
        return min(max(fitting, PERIOD_MIN), PERIOD_MAX)

    def message(self, stamp: int) -> bytes:
        """The full message that carries this stamp."""
        start = stamp % len(_PATTERN)
        body = self.size - STAMP_BYTES
        turned = _PATTERN[start:] + _PATTERN[:start]
        return _STAMP.pack(stamp) + (turned * (body // len(turned) + 1))[:body]

    def messages(self, sender: int) -> list[bytes]:
        """One period of a sender's messages, as they are handed to the transport."""
        stamps = range(stamp_of(sender, 0), stamp_of(sender, self.period))
        if self.mode == "loan":
            return [self.message(stamps[0]), *(_STAMP.pack(stamp) for stamp in stamps[1:])]
        return [self.message(stamp) for stamp in stamps]

    def block(self, sender: int) -> NDArray[np.uint8]:
        """One period of full messages as rows of an array, for compiled peers."""
        stamps = range(stamp_of(sender, 0), stamp_of(sender, self.period))
        joined = b"".join(self.message(stamp) for stamp in stamps)
        return np.frombuffer(joined, np.uint8).reshape(self.period, self.size)

    def stamp_total(self, sender: int, count: int) -> int:
        """The sum of the stamps of a sender's first ``count`` messages."""
        laps, rest = divmod(count, self.period)
        indices = laps * (self.period * (self.period - 1) // 2) + rest * (rest - 1) // 2
        return count * stamp_of(sender, 0) + indices


def stamp_of(sender: int, index: int) -> int:
    """The stamp of a sender's message ``index`` (already reduced modulo the period)."""
    return sender << 32 | index
