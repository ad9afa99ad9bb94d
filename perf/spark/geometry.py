"""The geometry of an HDR histogram: which values share a bucket.

A geometry is (lowest, highest, digits).  With `unit` the bits that are not told apart at all,
and `half` the bits of resolution (2^half >= 10^digits), a value v is in a bucket of

    size(v) = 2^max(unit, bits(v) - half - 1)         aligned to its size

so a geometry with larger `unit` and smaller `half` has buckets that are unions of the other's.
That is why histograms of different geometries can be merged in the coarsest of them exactly as
if all had been recorded in it; the only error is the size of its buckets, which it states.
"""

from __future__ import annotations

from dataclasses import dataclass

HALF = {1: 4, 2: 7, 3: 10, 4: 14, 5: 17}
"""Bits of half a bucket's sub-buckets, by significant digits."""

MOST = (1 << 63) - 1


@dataclass(frozen=True)
class Geometry:
    """lowest: values below are not told apart; highest: what is tracked at least; digits: 1-5."""

    lowest: int
    highest: int
    digits: int

    @property
    def fault(self) -> str | None:
        """What is wrong with it, if anything."""
        if self.digits not in HALF:
            return f"{self.digits} significant digits; there are 1 to 5"
        if not 1 <= self.lowest <= MOST // 2:
            return f"lowest value {self.lowest}; it is at least 1"
        if not 2 * self.lowest <= self.highest <= MOST:
            return f"highest value {self.highest}; it is at least twice the lowest, {self.lowest}"
        if self.unit + self.half > 61:
            return f"lowest value {self.lowest} with {self.digits} digits needs more than 64 bits"
        return None

    @property
    def unit(self) -> int:
        return self.lowest.bit_length() - 1

    @property
    def half(self) -> int:
        return HALF[self.digits]

    @property
    def length(self) -> int:
        """How many counts there are."""
        buckets = max(self.highest.bit_length() - (self.unit + self.half + 1), 0) + 1
        return (buckets + 1) << self.half

    @property
    def error(self) -> float:
        """By how much a value can differ from its bucket, relative to it, above `lowest`."""
        return 1 / (1 << self.half)

    def index(self, value: int) -> int:
        bucket = max(value.bit_length() - (self.unit + self.half + 1), 0)
        return (bucket << self.half) + (value >> (bucket + self.unit))

    def lowest_value(self, index: int) -> int:
        bucket = max((index >> self.half) - 1, 0)
        return (index - (bucket << self.half)) << (bucket + self.unit)

    def highest_value(self, index: int) -> int:
        bucket = max((index >> self.half) - 1, 0)
        return self.lowest_value(index) + (1 << (bucket + self.unit)) - 1


def unit_sql(lowest: str) -> str:
    return f"(length(bin({lowest})) - 1)"


def half_sql(digits: str) -> str:
    return f"CASE {digits} " + " ".join(f"WHEN {d} THEN {h}" for d, h in HALF.items()) + " END"


def bucket_sql(index: str, half: str) -> str:
    return f"greatest(shiftright({index}, {half}) - 1, 0)"


def lowest_value_sql(index: str, unit: str, half: str) -> str:
    """The same arithmetic where the rows are."""
    bucket = bucket_sql(index, half)
    return f"shiftleft(CAST({index} - shiftleft({bucket}, {half}) AS BIGINT), {bucket} + {unit})"


def highest_value_sql(index: str, unit: str, half: str) -> str:
    size = f"shiftleft(1L, {bucket_sql(index, half)} + {unit})"
    return f"({lowest_value_sql(index, unit, half)} + ({size} - 1))"


def index_sql(value: str, unit: str, half: str) -> str:
    bucket = f"greatest(length(bin({value})) - ({unit} + {half} + 1), 0)"
    return f"CAST(shiftleft({bucket}, {half}) + shiftright({value}, {bucket} + {unit}) AS INT)"
