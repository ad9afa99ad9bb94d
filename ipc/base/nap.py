"""Naps between tries that are each worth it, where no bell tells of all that is wanted."""

from __future__ import annotations

from typing import Final

NAP_S: Final = 0.001
NAP_S_MAX: Final = 0.016


def longer(nap: float) -> float:
    """How long to wait before the next try, after this nap; 0.0: there was none yet."""
    return min(max(2 * nap, NAP_S), NAP_S_MAX)
