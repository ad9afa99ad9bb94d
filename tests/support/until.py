"""To wait for what nothing tells of."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.005


def until(holds: Callable[[], object], shown: Callable[[], object] = lambda: "") -> None:
    """`shown`: what there is, if it does not come to hold."""
    late = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < late, shown()
        time.sleep(PAUSE_SECONDS)
