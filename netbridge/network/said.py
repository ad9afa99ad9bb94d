"""What one end of a network link tells the other: the queues of which it wants the messages.

Each connection begins with nothing told.  What is told then are the differences to what was told
before over the same connection, in pages; what stands counts when the last page has come.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wants:
    prefetch: int
    """So many messages may be on their way at most."""
    is_duplex: bool
    """Whoever hears it may want messages, too."""
    is_whole: bool
    """No page of the same difference comes behind it."""
    queues: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Queues that are wanted no more."""
