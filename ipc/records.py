"""The kinds of records of the journal.  Its files know the first two; bodies are bytes to them."""

from __future__ import annotations

from typing import Final

SEGMENTS: Final = 0
"""Which segments are needed, and where each ends: the journal's own, written by itself."""
MESSAGE: Final = 1
"""A chunk, at its queue's position."""
RETIRED: Final = 2
"""All below the position are retired; bit i of the body: so is position + i."""
QUEUE: Final = 3
"""A queue is declared."""
QUEUE_GONE: Final = 4
"""A queue is deleted, with all that is in it."""
CATALOG: Final = 5
"""An exchange, a binding, settings of a pattern, …"""
TRANSACTION: Final = 6

KINDS_MAX: Final = 255
"""Others are free."""
