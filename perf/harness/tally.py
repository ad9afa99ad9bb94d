"""A tally: what one process received, counted, summed and spot-checked.

``keep(message)`` is called once a message and must cost next to nothing; ``settle()`` is called
every ``batch`` messages, adds up what was kept and compares the last message in full.
Small messages are kept and added up together (a few ns each); of large ones only the last is
kept, because a hundred of 1 MiB would no longer fit any cache. In mode loan what is kept are
stamps, and now and then a full message, which is compared.
"""

import struct
from collections.abc import Callable, Sequence

import numpy as np

from shmbroker.perf.harness.payload import Payload
from shmbroker.perf.harness.role_result import Checksum
from shmbroker.perf.machine.size import STAMP_BYTES

Message = bytes | bytearray | memoryview

LARGE_BYTES = 64 << 10
_stamp_at = struct.Struct("<q").unpack_from


class MessageDamaged(Exception):
    """A message that was compared in full is not what was sent."""


class Tally:
    """One receiver's count and sum; not shared."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._width = STAMP_BYTES if payload.mode == "loan" else payload.size
        self._expected: dict[int, bytes] = {}
        self._kept: list[Message] = []
        self._last: Message | None = None
        self._count = 0
        self._total = 0
        self.keep: Callable[[Message], None] = self._kept.append
        if self._width >= LARGE_BYTES:
            self.keep = self._note

    def keep_all(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self.keep(message)

    def settle(self) -> None:
        """Add up what was kept since the last time; compare its last message in full."""
        if self._kept:
            self._last = self._kept[-1]
            self._count += len(self._kept)
            self._total += self._sum_kept()
            self._kept.clear()
        if self._last is not None and len(self._last) >= self._payload.size:
            self._compare(self._last)
        self._last = None

    def checksum(self) -> Checksum:
        self.settle()
        return Checksum(self._count, self._total)

    def _note(self, message: Message) -> None:
        self._count += 1
        self._total += _stamp_at(message)[0]
        self._last = message

    def _sum_kept(self) -> int:
        joined = b"".join(self._kept)
        if len(joined) == self._width * len(self._kept):
            return int(np.frombuffer(joined, np.int64)[:: self._width // STAMP_BYTES].sum())
        for message in self._kept:
            if len(message) != self._width:
                self._compare(message)
        return sum(_stamp_at(message)[0] for message in self._kept)

    def _compare(self, message: Message) -> None:
        stamp: int = _stamp_at(message)[0]
        if stamp not in self._expected:
            self._expected[stamp] = self._payload.message(stamp)
        if bytes(message) != self._expected[stamp]:
            raise MessageDamaged(
                f"the message with stamp {stamp:#x} arrived with {len(message)} bytes "
                f"that are not the {self._payload.size} bytes that were sent"
            )
