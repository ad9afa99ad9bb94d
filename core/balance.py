"""Balanced sets: which of several rings a message of one queue goes to.

A queue that other nodes of a cluster have too is a set: its own ring, and for each other node the
ring of the queue towards that node.  Of a member there are two words: the reference to its queue,
and the target, 0 for the ring of the balanced queue itself, else the number by which the other node
is told whose message it is.  The two belong together: a message that has the target of another
member would arrive in another queue.

    broker, the only writer                       publisher
    1. write the copy that is not valid           1. turn: one more
    2. version: one more; that copy is valid      2. load the version, read the copy that is valid
                                                  3. version and row as before?  else again from 2

So a publisher waits for nobody, and a broker that dies has left the former members.  The copy that
was read is written again only behind the exchange of step 2, so who has read a mixture of two sees
another version.  Which members are eligible is one word of the copy, and changes without a version.

Each turn goes to the next eligible member, counted among the eligible: one that is not is no reason
for its neighbour to get twice as much.  A turn whose publisher dies is lost, and nothing with it.

A member may take only what one of its selectors matches: then their programs are in the copy, and
it is not among those that are always eligible.  Who publishes copies the programs, runs them, which
no kernel does, and says with the answers of which version they are.

A ring says which set is its queue's in a word beside tail, which publishers load anyway.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    exchange,
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
    store,
    store_release,
)
from shmbroker.core.codes import INVALID, NOT_FOUND, OK, STALE
from shmbroker.core.kernel import exported, exported_cold, kernel
from shmbroker.core.layout import (
    BALANCE_COPIES_AT,
    BALANCE_COPY_BYTES,
    BALANCE_COUNT_AT,
    BALANCE_COUNT_BITS,
    BALANCE_ELIGIBLE_AT,
    BALANCE_MEMBERS,
    BALANCE_MEMBERS_AT,
    BALANCE_SELECTORS_AT,
    BALANCE_SELECTORS_BYTES,
    BALANCE_TURN_AT,
    BALANCE_VERSION_AT,
    BALANCES,
    MEMBER_BYTES,
    MEMBER_QUEUE_AT,
    MEMBER_TARGET_AT,
    QUEUES,
    REFERENCE_INDEX_MASK,
    RING_BALANCE_AT,
    ROW_LIVE,
)
from shmbroker.core.row import (
    entry_at,
    reference_of,
    row_commit,
    row_in_range,
    row_load,
    row_of,
    row_unchanged,
)

TRIES = 8
"""How often to read a set that changes meanwhile; after that the message stays here."""

TURNS = (1 << 62) - 1


@kernel
def balance_copy_at(entry: int, version: int) -> int:
    """The copy that is valid while the version is this."""
    return entry + BALANCE_COPIES_AT + (version & 1) * BALANCE_COPY_BYTES


@kernel
def member_at(copy: int, index: int) -> int:
    return copy + BALANCE_MEMBERS_AT + index * MEMBER_BYTES


@kernel
def members_in(counts: int) -> int:
    return min(counts & ((1 << BALANCE_COUNT_BITS) - 1), BALANCE_MEMBERS)


@kernel
def selectors_in(counts: int) -> int:
    """Bytes of them."""
    return max(0, min(counts >> BALANCE_COUNT_BITS, BALANCE_SELECTORS_BYTES))


@kernel
def lowest_of(bits: int) -> int:
    """The index of the lowest bit that is set; bits is not 0."""
    index = 0
    while not (bits >> index) & 1:
        index += 1
    return index


@kernel
def bits_in(bits: int) -> int:
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@kernel
def is_there(catalog: int, member: int) -> int:
    """1 if the queue of a member was not deleted."""
    return int(row_of(catalog, QUEUES, load(member + MEMBER_QUEUE_AT)) >= 0)


@kernel
def balance_eligible_member(catalog: int, copy: int, count: int, turn: int, takes: int) -> int:
    """Which eligible member has this turn, or the next whose queue is there; NOT_FOUND."""
    eligible = (load_acquire(copy + BALANCE_ELIGIBLE_AT) | takes) & ((1 << count) - 1)
    left = bits_in(eligible)
    if left == 0:
        return NOT_FOUND
    rest = eligible
    for _ in range(turn % left):
        rest &= rest - 1
    for _ in range(left):
        index = lowest_of(rest)
        if is_there(catalog, member_at(copy, index)):
            return index
        rest &= rest - 1
        if rest == 0:
            rest = eligible
    return NOT_FOUND


@kernel
def balance_other_member(catalog: int, copy: int, count: int) -> int:
    """None is eligible: the ring of the queue itself, else the first that is there."""
    first = NOT_FOUND
    for index in range(count):
        member = member_at(copy, index)
        if is_there(catalog, member):
            if load(member + MEMBER_TARGET_AT) == 0:
                return index
            if first == NOT_FOUND:
                first = index
    return first


@kernel
def balance_read(catalog: int, copy: int, count: int, turn: int, takes: int, chosen: int) -> int:
    """Write the member of this turn to `chosen`: OK, or NOT_FOUND if no queue is there."""
    index = balance_eligible_member(catalog, copy, count, turn, takes)
    if index < 0:
        index = balance_other_member(catalog, copy, count)
    if index < 0:
        return NOT_FOUND
    member = member_at(copy, index)
    store(chosen + MEMBER_QUEUE_AT, load(member + MEMBER_QUEUE_AT))
    store(chosen + MEMBER_TARGET_AT, load(member + MEMBER_TARGET_AT))
    return OK


@kernel
def balance_read_at_once(catalog: int, copy: int, turn: int, chosen: int) -> int:
    """The same, unless it depends on selectors: then how many bytes of them."""
    counts = load(copy + BALANCE_COUNT_AT)
    if selectors_in(counts) > 0:
        store(chosen + MEMBER_QUEUE_AT, turn)
        return selectors_in(counts)
    return balance_read(catalog, copy, members_in(counts), turn, 0, chosen)


@exported_cold
def balance_choose(catalog: int, reference: int, chosen: int) -> int:
    """Whose turn it is in this set: OK with the two words of a member at `chosen`.

    NOT_FOUND: there is no such set, or nobody in it; the message stays in the ring of its queue.
    More than 0: it depends on selectors; the turn is at `chosen`, for balance_choose_among.
    """
    index = reference & REFERENCE_INDEX_MASK
    if not row_in_range(BALANCES, index):
        return NOT_FOUND
    row = row_load(catalog, BALANCES, index)
    if not row & ROW_LIVE or reference_of(row, index) != reference:
        return NOT_FOUND
    entry = entry_at(catalog, BALANCES, index)
    turn = fetch_add(entry + BALANCE_TURN_AT, 1) & TURNS
    for _ in range(TRIES):
        # SYNC POINT: balance (acquire): pairs with the exchange of balance_write
        version = load_acquire(entry + BALANCE_VERSION_AT)
        code = balance_read_at_once(catalog, balance_copy_at(entry, version), turn, chosen)
        # the words only belong together while nobody has begun to write this copy again
        fence_acquire()
        if load(entry + BALANCE_VERSION_AT) == version:
            return code if row_unchanged(catalog, BALANCES, index, row) else NOT_FOUND
    return NOT_FOUND


@exported_cold
def balance_selectors(catalog: int, reference: int, copied: int) -> int:
    """Copy the selectors of this set: how many bytes, behind a word with their version.

    NOT_FOUND as in balance_choose; STALE: the set changes meanwhile.
    """
    index = row_of(catalog, BALANCES, reference)
    if index < 0:
        return NOT_FOUND
    entry = entry_at(catalog, BALANCES, index)
    # SYNC POINT: balance (acquire): pairs with the exchange of balance_write
    version = load_acquire(entry + BALANCE_VERSION_AT)
    copy = balance_copy_at(entry, version)
    length = selectors_in(load(copy + BALANCE_COUNT_AT))
    store(copied, version)
    for at in range(0, length, 8):
        store(copied + 8 + at, load(copy + BALANCE_SELECTORS_AT + at))
    fence_acquire()
    if load(entry + BALANCE_VERSION_AT) != version:
        return STALE
    return length


@exported_cold
def balance_choose_among(
    catalog: int, reference: int, turn: int, version: int, takes: int, chosen: int
) -> int:
    """balance_choose, where it depends on selectors: those of this version say that members of the
    bits in `takes` take the message.

    STALE: the set has another version now, so other selectors.
    """
    index = reference & REFERENCE_INDEX_MASK
    if not row_in_range(BALANCES, index):
        return NOT_FOUND
    row = row_load(catalog, BALANCES, index)
    if not row & ROW_LIVE or reference_of(row, index) != reference:
        return NOT_FOUND
    entry = entry_at(catalog, BALANCES, index)
    copy = balance_copy_at(entry, version)
    code = balance_read(
        catalog, copy, members_in(load(copy + BALANCE_COUNT_AT)), turn, takes, chosen
    )
    fence_acquire()
    if load(entry + BALANCE_VERSION_AT) != version:
        return STALE
    return code if row_unchanged(catalog, BALANCES, index, row) else NOT_FOUND


@kernel
def balance_write(
    entry: int, members: int, count: int, eligible: int, selectors: int, length: int
) -> int:
    """Give a set these members, in one step: its version."""
    version = load(entry + BALANCE_VERSION_AT) + 1
    copy = balance_copy_at(entry, version)
    store(copy + BALANCE_COUNT_AT, count | length << BALANCE_COUNT_BITS)
    store(copy + BALANCE_ELIGIBLE_AT, eligible)
    for index in range(count):
        member = member_at(copy, index)
        source = members + index * MEMBER_BYTES
        store(member + MEMBER_QUEUE_AT, load(source + MEMBER_QUEUE_AT))
        store(member + MEMBER_TARGET_AT, load(source + MEMBER_TARGET_AT))
    for at in range(0, length, 8):
        store(copy + BALANCE_SELECTORS_AT + at, load(selectors + at))
    # SYNC POINT: balance (release): who sees the version sees the copy.  No store: the next writing
    # of the other copy must not be seen before this
    exchange(entry + BALANCE_VERSION_AT, version)
    return version


@kernel
def has_place(count: int, length: int) -> int:
    """1 if a set may have so many members, and so many bytes of selectors."""
    return int(
        0 <= count <= BALANCE_MEMBERS and 0 <= length <= BALANCE_SELECTORS_BYTES and length % 8 == 0
    )


@exported_cold
def balance_put(
    catalog: int,
    index: int,
    members: int,
    count: int,
    eligible: int,
    selectors: int,
    length: int,
) -> int:
    """Make a set in a free row whose entry has memory: its reference.  Its members as for
    balance_change."""
    if not row_in_range(BALANCES, index) or row_load(catalog, BALANCES, index) & ROW_LIVE:
        return INVALID
    if not has_place(count, length):
        return INVALID
    entry = entry_at(catalog, BALANCES, index)
    balance_write(entry, members, count, eligible, selectors, length)
    return row_commit(catalog, BALANCES, index, 0)


@exported_cold
def balance_change(
    catalog: int,
    reference: int,
    members: int,
    count: int,
    eligible: int,
    selectors: int,
    length: int,
) -> int:
    """Give a set other members: OK or a code.

    `members` has two words for each, in the order of their turns; bit i of `eligible` is member i.
    `selectors` has so many bytes: of each a word with its member and its length, and its program.
    """
    if not has_place(count, length):
        return INVALID
    index = row_of(catalog, BALANCES, reference)
    if index < 0:
        return NOT_FOUND
    entry = entry_at(catalog, BALANCES, index)
    balance_write(entry, members, count, eligible, selectors, length)
    return OK


@exported_cold
def balance_eligible(catalog: int, reference: int, eligible: int) -> int:
    """Say which members of a set are eligible; the members stay: OK or a code."""
    index = row_of(catalog, BALANCES, reference)
    if index < 0:
        return NOT_FOUND
    entry = entry_at(catalog, BALANCES, index)
    copy = balance_copy_at(entry, load(entry + BALANCE_VERSION_AT))
    store_release(copy + BALANCE_ELIGIBLE_AT, eligible)
    return OK


@exported_cold
def balance_tell(ring: int, reference: int) -> int:
    """The set of this ring's queue, 0 none; before a set is removed, its ring is told."""
    # SYNC POINT: balance-ring (release): who sees the reference sees the set
    return store_release(ring + RING_BALANCE_AT, reference)


@exported
def balance_of(ring: int) -> int:
    """The set of this ring's queue, 0 none."""
    # SYNC POINT: balance-ring (acquire): pairs with balance_tell
    return load_acquire(ring + RING_BALANCE_AT)
