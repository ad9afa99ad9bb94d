"""Showing a moment: replicas are brought to where their originals were, all of them at once.

What belongs to the moment is written down before (ipc/queue_replica/moment.py).  To the journaler
one of durable replicas is a transaction (commit.py): it waits until all of it is there, so all of
it is in one frame.  To who follows the replicas in turn it is one, too: what is read behind it is
of another moment.
"""

from __future__ import annotations

from shmbroker.core.atomics import load, load_acquire, store, store_release
from shmbroker.core.codes import FULL, OK, STALE
from shmbroker.core.commit import commit_count_plain, commit_show, commit_shown
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    PORT_BARRIER,
    PORT_HEADER,
    PORT_SLOT_MASK,
    POSITION_MASK,
    REPLICA_BITS,
    REPLICA_CODE,
    REPLICA_COMPARED,
    REPLICA_COUNT,
    REPLICA_END,
    REPLICA_FAILED,
    REPLICA_HEAD,
    REPLICA_LENGTH,
    REPLICA_PORT,
    REPLICA_REVIVED,
    REPLICA_STAGED,
    RING_ACKNOWLEDGED_AT,
    STAGED_BYTES,
)
from shmbroker.core.replica import (
    replica_holes,
    replica_place,
    replica_retire,
    replica_retire_above,
    replica_revived,
    replica_tail,
)
from shmbroker.core.retired import is_retired


@kernel
def is_done_there(replica: int, position: int) -> int:
    bits, length = load(replica + REPLICA_BITS), load(replica + REPLICA_LENGTH)
    return is_retired(position, load(replica + REPLICA_HEAD), bits, length)


@exported_cold
def replica_fits(replica: int) -> int:
    """1 if its slots are enough: before anything of the moment is seen."""
    first, end = load(replica + REPLICA_HEAD), load(replica + REPLICA_END)
    while first < end and is_done_there(replica, first):
        first += 1
    slots = load(load(replica + REPLICA_PORT) + PORT_SLOT_MASK) + 1
    if end - first <= slots:
        return 1
    store(replica + REPLICA_CODE, FULL)
    store(replica + REPLICA_FAILED, first + slots)
    return 0


@kernel
def done_note(port: int, head: int, length: int) -> int:
    """The journaler looks so far for what is done with."""
    address = load(port + PORT_HEADER) + RING_ACKNOWLEDGED_AT
    end = min(head + 8 * length, replica_tail(port))
    if load_acquire(address) < end:
        store_release(address, end)
    return OK


@kernel
def staged_place(replica: int) -> int:
    """What is staged is there, but for what is done with by now."""
    each = load(replica + REPLICA_STAGED)
    end = each + load(replica + REPLICA_COUNT) * STAGED_BYTES
    code = OK
    while code == OK and each < end:
        position = load(each)
        if not is_done_there(replica, position):
            store(replica + REPLICA_FAILED, position)
            code = replica_place(load(replica + REPLICA_PORT), load(each + 8), position)
        each += STAGED_BYTES
    return code


@kernel
def replica_show(replica: int) -> int:
    """Bring it to the moment: OK, or a code, which is noted.

    What makes room comes first: it was done with before what follows came.  Only what was here
    before is looked at for what came back: a message that was taken there before it was copied is a
    hole from the beginning.
    """
    port, head = load(replica + REPLICA_PORT), load(replica + REPLICA_HEAD)
    bits, length = load(replica + REPLICA_BITS), load(replica + REPLICA_LENGTH)
    end, known = load(replica + REPLICA_END), replica_tail(port)
    done_note(port, head, length)
    code = replica_retire(port, head)
    if code == OK:
        code = replica_retire_above(port, head, bits, length)
    if code == OK:
        code = staged_place(replica)
    if code == OK:
        code = replica_holes(port, end)
    if code == OK:
        code = replica_retire_above(port, head, bits, length)
    if code == OK and load(replica + REPLICA_COMPARED) == 0:
        revived = replica_revived(port, head, bits, length, min(end, known))
        store(replica + REPLICA_REVIVED, revived)
    store(replica + REPLICA_COMPARED, 1)
    if load(replica + REPLICA_REVIVED) != 0:
        code = STALE
    store(replica + REPLICA_COUNT, 0)
    if code < 0:
        store(replica + REPLICA_CODE, code)
    return code


@exported_cold
def moment_show(transactions: int, replicas: int, count: int, is_durable: int) -> int:
    """Show the moment of so many replicas, whose addresses these are: its number."""
    number = commit_show(transactions) if is_durable else commit_count_plain(transactions)
    for each in range(count):
        replica_show(load(replicas + 8 * each))
    commit_shown(transactions)
    return number


@exported_cold
def replica_is_confirmed(port: int) -> int:
    """1 if all that is there is confirmed."""
    confirmed = load_acquire(load(port + PORT_BARRIER)) & POSITION_MASK
    return int(confirmed >= replica_tail(port))
