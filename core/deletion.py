"""The mark of a queue that is about to be deleted because it is empty and nobody uses it.

    publisher                            who deletes, under the catalog's lock
    1. the CAS that publishes            1. deletion_mark
    2. is it marked?  no: done           2. look whether the queue is empty
    3. take the catalog's lock           3. empty: delete it; else deletion_unmark
    4. is the queue still there?

Both first steps are locked operations.  So if the message came too late to be seen by who deletes,
its publisher sees the mark, waits for what becomes of the queue, and answers NOT_FOUND if it is
gone.  No message is confirmed and then deleted.  Who died after step 1 has left a mark, which the
next publisher removes.

A transaction does the same before it is decided, with the CAS by which it takes a series of
numbers: while a series is held the queue stays (core/transaction.py).
"""

from __future__ import annotations

from shmbroker.core.atomics import exchange, load_acquire, store_release
from shmbroker.core.kernel import exported
from shmbroker.core.layout import RING_DOOMED_AT


@exported
def deletion_mark(ring: int) -> int:
    """Under the catalog's lock: it is deleted if it is found empty after this."""
    # SYNC POINT: deletion (sequentially consistent): pairs with the load of deletion_is_marked
    return exchange(ring + RING_DOOMED_AT, 1)


@exported
def deletion_unmark(ring: int) -> int:
    """Under the catalog's lock: it stays."""
    return store_release(ring + RING_DOOMED_AT, 0)


@exported
def deletion_is_marked(ring: int) -> int:
    """Not 0: take the catalog's lock, and see whether the queue is still there."""
    # SYNC POINT: deletion (after a locked operation): pairs with the exchange of deletion_mark
    return load_acquire(ring + RING_DOOMED_AT)
