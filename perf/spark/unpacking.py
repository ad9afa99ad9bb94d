"""The counts of many histograms, from zigzag LEB128: the one loop over bytes that there is.

Compiled, as numpy takes some twenty passes for it: four times as long, measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

GOOD, TRUNCATED, OVERFLOWS, TOO_LONG = 0, 1, 2, 3
WHAT = {
    TRUNCATED: "its counts are truncated",
    OVERFLOWS: "a count that overflows",
    TOO_LONG: "more empty buckets than there can be",
}
SHIFT_MAX = 49
"""Of the eighth byte: a longer number is above 2^55, more than any interval may have."""
INDEX_MAX = (1 << 31) - 1


def unpack(
    octets: np.ndarray, edges: np.ndarray, ends: np.ndarray, indexes: np.ndarray,
    counts: np.ndarray, faults: np.ndarray,
) -> int:  # fmt: skip
    """Payload i is at edges[i]:edges[i + 1]; what it has goes to ends[i]:ends[i + 1] of the others.

    `indexes` and `counts` are as long as octets, `faults` starts as zeros.  How many were filled.
    """
    filled = 0
    ends[0] = 0
    for row in range(len(edges) - 1):
        at, stop, index, begin = edges[row], edges[row + 1], 0, filled
        while at < stop and faults[row] == GOOD:
            value: Any = 0
            shift = 0
            while True:
                if at >= stop:
                    faults[row] = TRUNCATED
                    break
                octet = np.int64(octets[at])
                at += 1
                value |= (octet & 0x7F) << shift
                if octet < 0x80:
                    break
                shift += 7
                if shift > SHIFT_MAX:
                    faults[row] = OVERFLOWS
                    break
            if faults[row] != GOOD:
                break
            # zigzag: odd is negative, and says how many buckets are empty
            if value & 1:
                index += (value >> 1) + 1
            else:
                if value:
                    indexes[filled] = index
                    counts[filled] = value >> 1
                    filled += 1
                index += 1
            if index > INDEX_MAX:
                faults[row] = TOO_LONG
        if faults[row] != GOOD:
            filled = begin
        ends[row + 1] = filled
    return filled


def compiled() -> Any:
    """Kept on disk where that is possible, so that not each worker compiles it."""
    try:
        return njit(cache=True)(unpack)
    except RuntimeError:  # nowhere to write
        return njit()(unpack)


unpack_fast = compiled()
