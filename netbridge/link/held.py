"""What may be shipped of a queue that is not durable, and into which links pour.

What a stream brings comes again if it is lost here before the mark of the stream is synced, and
whoever has subscribed to the queue would get it for the second time.  So it waits until it is
synced, with all that stood there by then: one sync at a time is waited for, however much comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

Told = Callable[[], None]


class Held:
    def __init__(self, after: Callable[[Told], None], end: Callable[[], int], news: Told) -> None:
        """`after`: tells once all that stands here now is synced.  `end`: where the queue ends."""
        self._after, self._end, self._news = after, end, news
        self.limit: int | None = None
        """Positions from this one on wait; None: none does."""
        self._is_asked = self._has_more = False

    def hold(self, first: int) -> None:
        """Something has come that is not synced, at this position or behind it."""
        if self.limit is None:
            self.limit = first
        if self._is_asked:
            self._has_more = True
        else:
            self._ask()

    def drop(self) -> None:
        """Nothing of the queue is shipped any more, and where it ends cannot be said."""
        self._has_more = False

    def _ask(self) -> None:
        self._is_asked, self._has_more = True, False
        self._after(partial(self._synced, self._end()))

    def _synced(self, end: int) -> None:
        self._is_asked = False
        self.limit = end if self._has_more else None
        if self._has_more:
            self._ask()
        self._news()
