"""The paging word: whether what is published in a queue goes to its inbox.

It stands in the ring of the inbox (ipc/paging/inbox.c).  0: publish in the queue's own ring.

    publisher                              pager
    1. the word is 0, and there is room:   1. load the word
       publish in the ring; else           2. move what is in the inbox to the ring
    2. paging_note                         3. nothing is left: paging_end with what was loaded
    3. publish in the inbox
    4. paging_note, then return

A publish that has returned has moved the word after its message was in the inbox.  So if the pager
did not see the message, it loaded another word, and its CAS fails: the word stays above 0 until the
message is in the ring, and the publisher's next one cannot overtake it.  The first note sends
others to the inbox early; it is not needed for order.  A publisher that dies before step 4 has
confirmed nothing, and the pager looks at the inbox, not only at the word.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, fetch_add, load_acquire, store_release
from shmbroker.core.kernel import exported, exported_cold
from shmbroker.core.layout import RING_PAGED_NEXT_AT, RING_PAGING_AT


@exported
def paging_seen(ring: int) -> int:
    """What the word is; not 0: publish in the inbox."""
    # SYNC POINT: paging (acquire): pairs with the CAS of paging_end
    return load_acquire(ring + RING_PAGING_AT)


@exported
def paging_note(ring: int) -> int:
    """Something is, or was just now, published in the inbox: what the word was."""
    return fetch_add(ring + RING_PAGING_AT, 1)


@exported
def paging_end(ring: int, since: int) -> int:
    """Inbox and pages were found empty after the word was this: 1 if the queue pages no more."""
    # SYNC POINT: paging (release): what the pager has put into the ring is there
    return int(compare_exchange(ring + RING_PAGING_AT, since, 0) == since)


@exported_cold
def paging_passed(ring: int, position: int) -> int:
    """All below is in the queue's ring, or dropped."""
    return store_release(ring + RING_PAGED_NEXT_AT, position)


@exported_cold
def paging_dropped(ring: int, at: int, count: int) -> int:
    """So many messages were not delivered: the counter at this place knows why."""
    return fetch_add(ring + at, count)


@exported_cold
def paging_told(ring: int, at: int, value: int) -> int:
    """What others are told of the pages: how many bytes they have, or why they are not written."""
    return store_release(ring + at, value)
