"""Queues that were looked through in vain: again when something has come, or a second later."""

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Final

KNOWN_MAX: Final = 10_000
ANEW_SECONDS: Final = 1.0


class Fruitless:
    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, float]] = {}
        """As it was then, and until when that holds."""

    def has(self, which: Hashable, now: object) -> bool:
        """It is as it was when nothing was found."""
        seen, until = self._known.get(which, (None, 0.0))
        if seen == now and time.monotonic() < until:
            return True
        self._known.pop(which, None)
        return False

    def add(self, which: Hashable, now: object) -> None:
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        self._known[which] = now, time.monotonic() + ANEW_SECONDS
