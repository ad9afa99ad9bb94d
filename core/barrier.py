"""The barrier: below it all is confirmed.  Consumers take up to it, and publishers wait for it.

It is the least of a set of gates: the journal's, and those of replicas that are in sync.  The set
may change at any time, so the least of it is a word of its own, and takers load only that one.

    mover                               newcomer
    1. move a gate of the set           1. put the bit of its gate into the set
    2. load the barrier                 2. put the next epoch into the barrier, by CAS
    3. load the set, then its gates
    4. CAS the barrier to the least

A mover whose set is without the newcomer has loaded the barrier before step 1 of the newcomer, so
its CAS fails after step 2.  From step 2 on nothing is confirmed that the newcomer has not passed.
What was confirmed before stays so: the barrier never goes back.  A newcomer that is behind it holds
it until it has come there.

Whoever leaves takes its bit out of the set, and then moves the barrier as a mover does.  Moving it
may be left undone by a death; the next mover does it, or a repair.  A gate of the set is lasting,
so it outlives its owner, and it cannot be closed (gate.py) before it has left.

Of a queue that others follow one by one (`confirm_replicas`) publishers wait, beyond the barrier,
until these have it.  Consumers do not: so this is a word of its own, and no gate.
"""

from __future__ import annotations

from shmbroker.core.atomics import compare_exchange, load, load_acquire
from shmbroker.core.codes import INVALID, OK, REVOKED
from shmbroker.core.gate import barrier_set, gate_at, gate_is_ours, gate_life
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    BARRIER_GATES,
    CONFIRM_DISK,
    CONFIRM_REPLICATED,
    EPOCH_STEP,
    GATE_KIND_AT,
    GATE_LASTING,
    GATE_REPLICA,
    PORT_BARRIER,
    PORT_HEADER,
    POSITION_MASK,
    REPLICATE_ALL,
    REPLICATE_UNSAID,
    RING_BARRIER_SET_AT,
    RING_COPIED_AT,
    RING_JOURNAL_GATE_AT,
    SETTING_REPLICATE_AT,
)
from shmbroker.core.visible import is_disk_enough, is_served, is_visible, may_run_ahead


@cold
def barrier_least(port: int) -> int:
    """The least of the gates in the set; 0 if there is none."""
    members = barrier_set(port)
    least = POSITION_MASK if members else 0
    gate = 0
    while members:
        if members & 1:
            # SYNC POINT: gate-move (acquire): pairs with the CAS of gate_move
            least = min(least, load_acquire(gate_at(port, gate)) & POSITION_MASK)
        members >>= 1
        gate += 1
    return least


@exported_cold
def barrier_raise(port: int) -> int:
    """After a gate of the set was moved, or has left: 1 if the barrier moved by this."""
    address = load(port + PORT_BARRIER)
    if address == 0:
        return 0
    # SYNC POINT: barrier-join (acquire): before the set; pairs with the CAS of barrier_join
    word = load_acquire(address)
    while True:
        least = barrier_least(port)
        if least <= word & POSITION_MASK:
            return 0
        seen = compare_exchange(address, word, word & ~POSITION_MASK | least)
        if seen == word:
            return 1
        word = seen


@kernel
def barrier_change(port: int, gate: int, member: int) -> int:
    """Put the bit of a gate in or out: 1 if it was the other before."""
    address = load(port + PORT_HEADER) + RING_BARRIER_SET_AT
    bit = 1 << gate
    seen = load_acquire(address)
    while (seen & bit != 0) != (member != 0):
        found = compare_exchange(address, seen, seen ^ bit)
        if found == seen:
            return 1
        seen = found
    return 0


@exported_cold
def barrier_join(port: int, gate: int) -> int:
    """What is confirmed from now on, our lasting gate has passed: where the barrier is.

    Once the gate has come there it has passed all that is confirmed.
    """
    address = load(port + PORT_BARRIER)
    if gate < 0 or gate >= BARRIER_GATES or address == 0:
        return INVALID
    word = load_acquire(gate_at(port, gate))
    if not gate_is_ours(port, word):
        return REVOKED
    if gate_life(word) != GATE_LASTING:
        return INVALID
    barrier_change(port, gate, 1)
    seen = load_acquire(address)
    while True:
        # SYNC POINT: barrier-join (release): a mover that has not seen our bit fails its CAS
        found = compare_exchange(address, seen, seen + EPOCH_STEP)
        if found == seen:
            return seen & POSITION_MASK
        seen = found


@kernel
def journal_gate(port: int) -> int:
    """The index of the journal's gate, -1: the queue is not durable."""
    return load(load(port + PORT_HEADER) + RING_JOURNAL_GATE_AT) - 1


@exported_cold
def barrier_leave(port: int, gate: int) -> int:
    """A gate, of whomever, counts no more: OK.  Then move the barrier as if the gate had moved."""
    if gate < 0 or gate >= BARRIER_GATES or gate == journal_gate(port):
        return INVALID
    barrier_change(port, gate, 0)
    return OK


# --- levels ---------------------------------------------------------------------------------------


@kernel
def replicas_of(port: int, position: int) -> int:
    """CONFIRM_REPLICATED if there are replicas in the set, and all have passed this position."""
    members = barrier_set(port)
    level = 0
    gate = 0
    while members:
        address = gate_at(port, gate)
        if members & 1 and load(address + GATE_KIND_AT) == GATE_REPLICA:
            if load_acquire(address) & POSITION_MASK <= position:
                return 0
            level = CONFIRM_REPLICATED
        members >>= 1
        gate += 1
    return level


@exported_cold
def confirm_level(port: int, position: int) -> int:
    """What is known of the message at this position: CONFIRM_*; -1: what is of every new message.

    That is the effective level of the queue.
    """
    gate = journal_gate(port)
    level = 0
    if 0 <= gate < BARRIER_GATES and load_acquire(gate_at(port, gate)) & POSITION_MASK > position:
        level = CONFIRM_DISK
    return level | replicas_of(port, position)


@kernel
def is_copied(port: int, position: int) -> int:
    """1 unless confirms wait for replicas of this queue, and they lack this position."""
    lacking = load_acquire(load(port + PORT_HEADER) + RING_COPIED_AT)
    return int(lacking == 0 or position < lacking - 1)


@kernel
def is_of_one_member(port: int) -> int:
    """1: a member that takes over has none of its messages, so none confirms them."""
    said = load(load(port + PORT_HEADER) + SETTING_REPLICATE_AT)
    return int(said != REPLICATE_ALL and said != REPLICATE_UNSAID)


@exported_cold
def is_confirmed(port: int, position: int, level: int) -> int:
    """1 if the message at this position is confirmed at this level; below 0: at the effective."""
    # nobody else has it, so the gates do not tell that somebody else may be live by now
    if is_of_one_member(port) and not is_served(port):
        return 0
    if level < 0:
        return int(is_visible(port, position) != 0 and is_copied(port, position) != 0)
    known = confirm_level(port, position)
    if known & level != level:
        return 0
    if level == CONFIRM_REPLICATED and not may_run_ahead(port):
        return int(known & CONFIRM_DISK != 0)
    # after the gates: what the disk had while that was enough stays confirmed
    if level == CONFIRM_DISK and not is_disk_enough(port):
        return is_visible(port, position)
    return 1
