"""Waiting for one descriptor: of a watch, or of a process that is to end.

By poll: select takes no number above 1023, and a broker with many programs has such.
"""

from __future__ import annotations

import select
from typing import Final

MOST_MS: Final = float(2**31 - 1)


def is_readable(file: int, seconds: float | None = None) -> bool:
    """Whether it can be read within this time, None: whenever; of a process: whether it ended."""
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    most = None if seconds is None else min(max(0.0, seconds) * 1000, MOST_MS)
    return bool(waiting.poll(most))
