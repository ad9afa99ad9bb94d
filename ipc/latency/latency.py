"""The times that a queue's messages took, as HDR histograms (docs/latency.md)."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from shmbroker.core.codes import GONE, OK
from shmbroker.core.layout import PUBLISH_DURABLE, PUBLISH_TAKE, TAKE_ACK
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import InvalidArgument

KINDS: Final[dict[str, int]] = {
    "publish-take": PUBLISH_TAKE,
    "take-ack": TAKE_ACK,
    "publish-durable": PUBLISH_DURABLE,
}

LOOKS: Final = 8


@dataclass(frozen=True, slots=True)
class Range:
    """What a histogram can tell apart: nanoseconds, and so many digits of each."""

    lowest: int
    highest: int
    digits: int

    def __post_init__(self) -> None:
        if lib.sb_histogram_length(self.lowest, self.highest, self.digits) < 0:
            raise InvalidArgument(
                f"no histogram has {self.digits} digits from {self.lowest} to {self.highest} ns"
            )

    @property
    def length(self) -> int:
        """How many buckets there are."""
        length: int = lib.sb_histogram_length(self.lowest, self.highest, self.digits)
        return length

    def lowest_of(self, index: int) -> int:
        value: int = lib.sb_histogram_lowest(self.lowest, self.digits, index)
        return value

    def highest_of(self, index: int) -> int:
        return self.lowest_of(index + 1) - 1


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of times: of a queue since it began to record, or of an interval."""

    range: Range
    indexes: array[int]
    """Of the buckets that are not empty, ascending."""
    counts: array[int]
    overflow: int = 0
    """Times that fit in no bucket: longer than the highest, or below 0 (the clock was set)."""

    @property
    def total(self) -> int:
        return sum(self.counts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The highest time of each bucket that is not empty, in ns, and its count."""
        for index, count in zip(self.indexes, self.counts, strict=True):
            yield self.range.highest_of(index), count

    def percentile(self, percent: float) -> int:
        """A time in ns that so many percent are not longer than; 0 if there are none."""
        if not 0 <= percent <= 100:
            raise InvalidArgument(f"a percentile is from 0 to 100, not {percent!r}")
        wanted = max(1, int(percent / 100 * self.total + 0.5))
        for value, count in self:
            wanted -= count
            if wanted <= 0:
                return value
        return 0

    @property
    def maximum(self) -> int:
        """Not less than the longest time, in ns; 0 if there are none."""
        return self.range.highest_of(self.indexes[-1]) if self.indexes else 0


@dataclass(slots=True)
class Counts:
    """All counts of one kind at one moment, the overflow last."""

    range: Range
    number: int
    """Changes when the queue begins anew, with another range."""
    values: Any

    @classmethod
    def zero(cls, like: Counts) -> Counts:
        return cls(like.range, like.number, ffi.new("int64_t[]", like.range.length + 1))

    def since(self, before: Counts | None) -> Histogram:
        """What was counted since then; from the beginning if that was another histogram."""
        if before is None or before.number != self.number:
            before = Counts.zero(self)
        length = self.range.length
        indexes, counts = ffi.new("int64_t[]", length), ffi.new("int64_t[]", length)
        grown = lib.sb_counts_since(self.values, before.values, length, indexes, counts)
        return Histogram(
            self.range,
            array("q", ffi.buffer(indexes, 8 * grown)[:]),
            array("q", ffi.buffer(counts, 8 * grown)[:]),
            self.values[length] - before.values[length],
        )


def counts_of(connection: Any, reference: int) -> dict[str, Counts] | int:
    """The counts of each kind now, of the queue with this reference; or a code.

    Empty if its times were never recorded.
    """
    told = ffi.new("sb_histograms *")
    code: int = OK
    for _ in range(LOOKS):
        code = lib.sb_histograms_told(connection, reference, told)
        if code != OK or told.number == 0:
            break
        found: dict[str, Counts] = {}
        range_ = Range(told.lowest, told.highest, told.digits)
        kinds = {name: kind for name, kind in KINDS.items() if kind < told.kinds}
        for name, kind in kinds.items():
            values = ffi.new("int64_t[]", told.length + 1)
            code = lib.sb_counts(connection, reference, told.number, kind, values)
            if code == OK:
                found[name] = Counts(range_, told.number, values)
        if len(found) == len(kinds):
            return found
        if code != GONE:  # gone: another range was asked for just now
            break
    return code if code != OK else {}
