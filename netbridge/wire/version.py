"""Versions of the protocol: each end tells the range that it speaks, and the highest common holds.

Every version reads the head of a `hello` and of a `refused`: a newer one may only add fields at the
end of them.
"""

from __future__ import annotations

LOWEST = 1
HIGHEST = 1
MOST = 1 << 16


def agreed(low: int, high: int) -> int | None:
    """The version to speak with an end that speaks these; None: there is none."""
    common = min(high, HIGHEST)
    return common if common >= max(low, LOWEST) else None
