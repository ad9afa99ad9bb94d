"""A plan: how much of a task a run does, and the one rule by which everybody is measured.

The measuring rule for round trips, the same for every peer and for the raw limit:

1. ``warmup`` round trips, not timed;
2. ``groups`` groups of GROUP_LENGTH round trips, one clock reading before and one after each
   group. p50 is the median over the groups of group time / GROUP_LENGTH. A clock reading costs
   about 20 ns, a raw round trip about 55 ns: timing each would measure the clock;
3. ``singles`` round trips, each timed by itself. p99 is their 99th percentile, and therefore
   includes the cost of one clock reading.

The clock is CLOCK_MONOTONIC (``time.perf_counter_ns``) everywhere. Replies are checked between
groups, outside the timed stretches.

The rule for streams: from the first sender's start to the last receiver's last message, over
the whole run, no warm-up; a sender starts its clock when the start barrier opens.
"""

from dataclasses import dataclass

from shmbroker.perf.harness.payload import Payload
from shmbroker.perf.harness.task import Task

GROUP_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of a task to do. ``count`` is for streams, the next three for ping-pong."""

    task: Task
    count: int = 0
    """Messages that each sender sends; in mode batch a multiple of ``batch``."""
    warmup: int = 0
    groups: int = 0
    singles: int = 0
    batch: int = 128
    """Messages in one call of mode batch; also every how many messages one is compared in full."""
    crowded: bool = False
    """More processes than cores: whoever finds nothing to do must yield, not spin."""

    @property
    def payload(self) -> Payload:
        return Payload(self.task.size, self.task.mode)

    @property
    def round_trips(self) -> int:
        return self.warmup + self.groups * GROUP_LENGTH + self.singles

    @property
    def arriving(self) -> int:
        """Messages that one receiver will get, where that is known (not when sharing)."""
        return self.count * self.task.topology.senders
