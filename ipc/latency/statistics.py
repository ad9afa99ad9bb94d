"""Statistics of a queue.

Nothing is counted for each message: what was published is the tail, what is there is in the slots'
words, and what is neither there nor dropped was acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shmbroker.ipc.latency.latency import Histogram


@dataclass(frozen=True, slots=True)
class Latency:
    """Nanoseconds from publish to take, while these are recorded (docs/latency.md)."""

    samples: int
    p50_ns: int
    p99_ns: int
    max_ns: int

    @classmethod
    def of(cls, histogram: Histogram) -> Latency | None:
        if histogram.total == 0:
            return None
        return cls(
            histogram.total,
            histogram.percentile(50),
            histogram.percentile(99),
            histogram.maximum,
        )


@dataclass(frozen=True, slots=True)
class Level:
    """The messages of one priority that nobody has: of a low one they may wait for long."""

    priority: int
    waiting: int
    oldest_published_at: int
    """Nanoseconds since the epoch, 0 if none waits."""


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    depth: int
    """Messages that are there, taken or not."""
    published: int
    """One that comes back after a delay is counted again."""
    delivered: int
    acked: int
    redelivered: int
    expired: int
    dead_lettered: int
    """Rejected: dropped, as long as the queue has no dead-letter queue."""
    set_aside: int
    """Of `depth`: not to be delivered, and passed over because the queue where it goes is full."""
    dropped: int
    replaced: int
    """By newer ones of the same key."""
    carried: int
    """To the end of the ring, because they held up what was replaced behind them."""
    slow_consumers: int
    """How often a consumer was found to be slow."""
    duplicates: int
    """Not published, because a message with this id or number was before."""
    bytes: int
    consumers: int
    producers: int
    taken: int
    slots: int
    is_paused: bool
    is_recorded: bool
    """Its latency, now."""
    latency: Latency | None
    scheduled: int
    """Not to be delivered yet; not in `depth`."""
    paged: int
    """Of `depth`: behind what is in memory, on its way to page files or in them."""
    paged_bytes: int
    """In page files."""
    levels: tuple[Level, ...]
    """From the highest priority to the lowest; none if the queue has no priorities."""

    @classmethod
    def of(cls, told: Any, latency: Latency | None) -> QueueStatistics:
        dropped = told.dropped + told.damaged + told.missing + told.purged
        returned = told.given_back + told.revoked
        elsewhere = told.paged + told.missing + told.purged  # and not in the ring
        published = max(0, told.tail - told.withdrawn - told.carried + elsewhere)
        done = published - told.ready - told.leased - told.paged
        gone = told.rejected + dropped + told.expired + told.delayed + told.replaced
        # read one after another while others work: what cannot be is rounded to what can
        acked = max(0, done - gone)
        return cls(
            depth=told.ready + told.leased + told.paged,
            published=published,
            delivered=acked + told.rejected + told.leased + returned,
            acked=acked,
            redelivered=returned,
            expired=told.expired,
            dead_lettered=told.rejected,
            set_aside=told.aside,
            dropped=dropped,
            replaced=told.replaced,
            carried=told.carried,
            slow_consumers=told.slow,
            duplicates=told.duplicates + told.withdrawn,
            bytes=told.bytes,
            consumers=told.consumers,
            producers=told.producers,
            taken=told.leased,
            slots=told.slots,
            is_paused=bool(told.paused),
            is_recorded=bool(told.recording),
            latency=latency,
            scheduled=told.scheduled,
            paged=told.paged,
            paged_bytes=told.paged_bytes,
            levels=tuple(
                Level(each, told.waiting[each], told.waiting_since[each])
                for each in reversed(range(told.levels))
            ),
        )
