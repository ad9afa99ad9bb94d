"""What each queue of a vhost has seen and holds, and who uses it; as ipc/latency/statistics.py."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shmbroker.cli.metrics.rings import Column, Rings
from shmbroker.core import layout as at
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.catalog.catalog import NAMELESS

if TYPE_CHECKING:
    from shmbroker.ipc.connection.broker import Broker

Figures = dict[str, NDArray[np.float64]]


class Queues:
    """The queues that people see: their names, and each figure of all of them."""

    def __init__(self, broker: Broker, *, unreadable: bool = False) -> None:
        """`unreadable`: also those whose rings are damaged, with zeroes."""
        rings = Rings(broker)
        seen = (rings.is_read | unreadable) & (rings.rows.flags & NAMELESS == 0)
        self.rows = np.flatnonzero(seen)
        self.names = [rings.rows.names[row] for row in self.rows.tolist()]
        self.references = rings.rows.references[self.rows]
        self.flags = rings.rows.flags[self.rows]
        self.is_recorded = rings.column(at.RING_HISTOGRAMS_AT)[self.rows] != 0
        whole = _figures(rings) | _uses(broker, rings.rows.references)
        self.figures: Figures = {
            name: column[self.rows].astype(np.float64) for name, column in whole.items()
        }

    @property
    def is_temporary(self) -> NDArray[np.bool_]:
        return np.asarray(self.flags & at.QUEUE_TEMPORARY != 0)

    @property
    def is_durable(self) -> NDArray[np.bool_]:
        return np.asarray(self.flags & at.QUEUE_DURABLE != 0)


def _figures(rings: Rings) -> dict[str, Column]:
    of = rings.column
    paged, paged_bytes, missing, purged = _paged(rings)
    dropped = of(at.COUNTER_DROPPED_AT) + of(at.COUNTER_DAMAGED_AT) + missing + purged
    returned = of(at.COUNTER_GIVEN_BACK_AT) + of(at.COUNTER_REVOKED_AT)
    depth = rings.ready + rings.leased + paged
    published = (
        rings.tails - of(at.COUNTER_WITHDRAWN_AT) - of(at.COUNTER_CARRIED_AT)
        + paged + missing + purged
    ).clip(0)  # fmt: skip
    expired, rejected = of(at.COUNTER_EXPIRED_AT), of(at.COUNTER_REJECTED_AT)
    gone = rejected + dropped + expired + of(at.COUNTER_DELAYED_AT) + of(at.COUNTER_REPLACED_AT)
    # read one after another while others work: what cannot be is rounded to what can
    acked = (published - depth - gone).clip(0)
    oldest = rings.published_ns
    age = np.where(oldest > 0, time.time_ns() - oldest, 0).clip(0)
    return {
        "depth": depth,
        "taken": rings.leased,
        "slots": of(at.RING_SLOTS_AT),
        "published": published,
        "delivered": acked + rejected + rings.leased + returned,
        "acked": acked,
        "redelivered": returned,
        "expired": expired,
        "dead_lettered": rejected,
        "dropped": dropped,
        "replaced": of(at.COUNTER_REPLACED_AT),
        "duplicates": of(at.COUNTER_DUPLICATES_AT) + of(at.COUNTER_WITHDRAWN_AT),
        "slow_consumers": of(at.COUNTER_SLOW_AT),
        "set_aside": rings.aside,
        "scheduled": _beside(rings, at.RING_SCHEDULE_AT, rings.ready + rings.leased),
        "paged": paged,
        "paged_bytes": paged_bytes,
        "paused": of(at.RING_MODE_AT) & at.MODE_PAUSED,
        "oldest_ns": age,
    }


def _paged(rings: Rings) -> tuple[Column, Column, Column, Column]:
    """Messages that wait in pages, their bytes, those that pages have lost, and were purged."""
    next_ = _beside(rings, at.RING_INBOX_AT, rings.column(at.RING_PAGED_NEXT_AT))
    tail = _beside(rings, at.RING_INBOX_AT, rings.tails)
    has_inbox = rings.column(at.RING_INBOX_AT) != 0
    return (
        np.where(has_inbox, (tail - next_).clip(0), 0),
        _beside(rings, at.RING_INBOX_AT, rings.column(at.RING_PAGED_BYTES_AT)),
        _beside(rings, at.RING_INBOX_AT, rings.column(at.COUNTER_MISSING_AT)),
        _beside(rings, at.RING_INBOX_AT, rings.column(at.COUNTER_PURGED_AT)),
    )


def _beside(rings: Rings, reference_at: int, column: Column) -> Column:
    """Of each ring, what this column has in the row of the ring that it refers to; else 0."""
    found = np.zeros(len(column), np.int64)
    references = rings.column(reference_at)
    for row in np.flatnonzero(references).tolist():
        place = rings.places.get(int(references[row]))
        if place is not None:
            found[row] = column[place]
    return found


def _uses(broker: Broker, references: Column) -> dict[str, Column]:
    """How many participants take from each queue, and publish to it."""
    memory = ffi.buffer(lib.sb_participants(broker._connection), at.PARTICIPANTS_BYTES)
    high = int(np.frombuffer(memory, np.int64, 1, at.PARTICIPANTS_HIGH_AT)[0])
    entries = np.frombuffer(
        memory, np.int64, at.PARTICIPANTS * at.PARTICIPANT_BYTES // 8, at.PARTICIPANTS_AT
    ).reshape(at.PARTICIPANTS, -1)
    consumers, producers = np.zeros((2, at.QUEUE_ROWS), np.int64)
    numbers = np.arange(1, min(max(1, high), at.PARTICIPANTS))
    states = entries[numbers, at.PARTICIPANT_STATE_AT // 8]
    known = np.zeros(at.QUEUE_ROWS, np.int64)
    known[references & at.REFERENCE_INDEX_MASK] = references
    for number in numbers[states == at.PARTICIPANT_LIVE].tolist():
        used = int(entries[number, at.PARTICIPANT_QUEUES_AT // 8])
        words = entries[number, at.PARTICIPANT_LIST_AT // 8 :][: max(0, used)]
        index = words & at.REFERENCE_INDEX_MASK & at.QUEUE_ROWS - 1
        bits = np.zeros(at.QUEUE_ROWS, np.int64)
        np.bitwise_or.at(bits, index, np.where(words & ~at.USES == known[index], words, 0))
        if used > at.PARTICIPANT_LIST:
            place = at.PARTICIPANTS_USES_AT + number * at.USES_BYTES
            beyond = np.frombuffer(memory, np.uint8, at.QUEUE_ROWS, place)
            bits |= beyond.astype(np.int64) << at.USE_SHIFT
        consumers += bits & at.USE_CONSUMES != 0
        producers += bits & at.USE_PRODUCES != 0
    rows = references & at.REFERENCE_INDEX_MASK
    return {"consumers": consumers[rows], "producers": producers[rows]}
