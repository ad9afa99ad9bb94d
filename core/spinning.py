"""Whether a wait spins before it sleeps: it does while spinning has paid lately.

Spinning pays where the other side runs on another processor: what it does arrives in a fraction of
the time that waking takes.  On the same processor it never pays: the other side cannot run while we
look.  A thread that is pinned cannot ask where the other one is, so it tries, and remembers.

    patience  how many more spins may be in vain; 0: resting or trying
    rest      ns that the next rest takes
    end       of the current rest, on the monotonic clock; then it tries
    try_end   of the try that follows, 0 before it has begun

    spinning   each wait spins for a while: won: patience + WON; in vain: patience - 1, at 0 a rest
    resting    no wait spins, until `end`
    trying     each wait spins LONG times as long.  Won as soon as an ordinary spin would have:
               spinning again, and the next rest is shorter.  In vain, or TRY_NS are over without
               that: another rest, which is longer, up to REST_MAX_NS

A try is longer than waking somebody takes.  If both sides rest, what one of them waits for comes
when the other has been woken, which an ordinary spin does not live to see: each would find its
spins in vain because the other has stopped.  The first that tries waits awake, as long as that
wins, until the other one tries as well, finds it awake, and wins at once.

So where spinning never pays it takes a hundredth of the time at first (80 us of 8 ms), and soon
about a thousandth.  Rests are times, not counts of waits: where waits are rare each may spin.

A thread that may run on several processors never rests (spinning_begin instead of spinning_rest).
The scheduler separates two threads of which one spins while the other wants to run; two that both
sleep it may keep on one processor for ever.

These words are private to one port of one queue; how long a spin is, is for the floor above.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, store
from shmbroker.core.codes import OK
from shmbroker.core.kernel import exported_cold
from shmbroker.core.layout import (
    SPINNING_END,
    SPINNING_LONG,
    SPINNING_PATIENCE,
    SPINNING_PATIENCE_MAX,
    SPINNING_REST,
    SPINNING_TRY_END,
)

WON = 2  # a spin that pays is worth more than one in vain costs
REST_MIN_NS = 8_000_000
REST_MAX_NS = 64_000_000
TRY_NS = 16_000_000  # two that rest from about the same time on, for REST_MIN_NS, try together


@exported_cold
def spinning_begin(spinning: int) -> int:
    """Spin until that has been in vain for a while."""
    store(spinning + SPINNING_PATIENCE, SPINNING_PATIENCE_MAX)
    store(spinning + SPINNING_REST, REST_MIN_NS)
    return OK


@exported_cold
def spinning_rest(spinning: int, now_ns: int) -> int:
    """Do not spin for a while: until when."""
    rest_ns = load(spinning + SPINNING_REST)
    store(spinning + SPINNING_REST, min(rest_ns + rest_ns, REST_MAX_NS))
    store(spinning + SPINNING_END, now_ns + rest_ns)
    store(spinning + SPINNING_TRY_END, 0)
    return now_ns + rest_ns


@exported_cold
def spinning_times(spinning: int, now_ns: int) -> int:
    """How many ordinary spins one takes that begins now; 0: the wait sleeps at once."""
    if load(spinning + SPINNING_PATIENCE) > 0:
        return 1
    if now_ns < load(spinning + SPINNING_END):
        return 0
    try_end_ns = load(spinning + SPINNING_TRY_END)
    if try_end_ns == 0:
        store(spinning + SPINNING_TRY_END, now_ns + TRY_NS)
    elif now_ns >= try_end_ns:
        spinning_rest(spinning, now_ns)
        return 0
    return SPINNING_LONG


@exported_cold
def spinning_won(spinning: int) -> int:
    """A spin has found what it looked for, and an ordinary one would have: so the next ones may."""
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
