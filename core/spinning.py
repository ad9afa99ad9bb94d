"""Whether a wait spins, looking for a while before it sleeps: as it has paid lately.

Spinning pays where the other side runs on another processor: what it does arrives in a fraction of
the time that waking takes.  On the same processor it never pays: the other side cannot run while we
look.  A thread that is pinned cannot ask where the other one is, so it tries, and remembers.

    patience  how many more spins may be in vain; at 0 there is a rest
    rest      ns that the next rest takes
    end       when the current rest ends, on the monotonic clock

         due ──► spin ──► won    patience + WON, up to PATIENCE_MAX; the next rest is shorter
                     └──► vain   patience - 1; at 0: rest, and the next rest is longer

After a rest one spin is tried, and if it is in vain another rest follows at once.  So where
spinning never pays it takes at most a hundredth of the time (10 us of REST_MIN), and soon less than
a thousandth; where it has begun to pay, waits spin again after REST_MAX at the latest.  Rests are
times, not counts of waits: where waits are rare each of them may spin.

A thread that may run on several processors never rests (spinning_begin instead of spinning_rest).
The scheduler separates two threads of which one spins while the other wants to run; two that both
sleep it may keep on one processor for ever.

Each of these words is private to one port of one queue; how long a spin is, is for the floor above.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.codes import OK
from shmbroker.core.kernel import exported_cold
from shmbroker.core.layout import (
    SPINNING_END,
    SPINNING_PATIENCE,
    SPINNING_PATIENCE_MAX,
    SPINNING_REST,
)

WON = 2  # a spin that pays is worth more than one in vain costs
REST_MIN_NS = 1_000_000
REST_MAX_NS = 16_000_000


@exported_cold
def spinning_begin(spinning: int) -> int:
    """Spin until that has been in vain for a while."""
    store(spinning + SPINNING_PATIENCE, SPINNING_PATIENCE_MAX)
    store(spinning + SPINNING_REST, REST_MIN_NS)
    return OK


@exported_cold
def spinning_is_due(spinning: int, now_ns: int) -> int:
    """1 if a wait that begins now is to spin, 0 if it sleeps at once."""
    if load(spinning + SPINNING_PATIENCE) > 0:
        return 1
    return int(now_ns >= load(spinning + SPINNING_END))


@exported_cold
def spinning_won(spinning: int) -> int:
    """A spin has found what it looked for."""
    patience = load(spinning + SPINNING_PATIENCE) + WON
    store(spinning + SPINNING_PATIENCE, min(patience, SPINNING_PATIENCE_MAX))
    store(spinning + SPINNING_REST, max(load(spinning + SPINNING_REST) >> 1, REST_MIN_NS))
    return OK


@exported_cold
def spinning_vain(spinning: int) -> int:
    """A spin has found nothing: how much patience is left.  At 0: spinning_rest."""
    patience = max(load(spinning + SPINNING_PATIENCE) - 1, 0)
    store(spinning + SPINNING_PATIENCE, patience)
    return patience


@exported_cold
def spinning_rest(spinning: int, now_ns: int) -> int:
    """Do not spin for a while: until when."""
    rest_ns = load(spinning + SPINNING_REST)
    store(spinning + SPINNING_REST, min(rest_ns + rest_ns, REST_MAX_NS))
    store(spinning + SPINNING_END, now_ns + rest_ns)
    return now_ns + rest_ns
