"""Records of a segment: checked where they were read, as frames or one by one, and looked for.

A frame counts as a whole, or not at all (ipc/journal/format.h).  The CRC of a record's head covers
its offset and the head, and begins with that of the segment's header; that of its body, which is in
the head, covers the zeros behind the body, too.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, fill, load, store
from shmbroker.core.codes import DAMAGED, EMPTY, INVALID, OK, TOO_LARGE, TOO_SMALL
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    CHECKING_AT,
    CHECKING_CHECKED,
    CHECKING_COVERED,
    CHECKING_END,
    CHECKING_NEEDED,
    CHECKING_NUMBER,
    CHECKING_OFFSET,
    CHECKING_SEED,
    CHECKING_WHOLE,
    PASSING_AFTER,
    PASSING_EPOCH,
    PASSING_LAST,
    PASSING_LIST,
    PASSING_NEEDED,
    PASSING_REPEATED,
    PASSING_ROOM,
    PASSING_SERIAL,
    PASSING_TO,
    PASSING_WANTED,
    PLACE_BYTES,
    PLACE_CHAIN,
    PLACE_EPOCH,
    PLACE_NUMBER,
    PLACE_SEAL,
    RECORD_BEHIND_MAX,
    RECORD_BEHIND_SHIFT,
    RECORD_FRAME_SHIFT,
    RECORD_HEAD_BYTES,
    RECORD_IS_LAST,
    RECORD_LENGTH_AT,
    RECORD_WHERE_AT,
    SHIPPED_AFTER,
    SHIPPED_CHAIN,
    SHIPPED_EPOCH,
    SHIPPED_HEAD_BYTES,
    SHIPPED_LENGTH,
    SHIPPED_NUMBER,
    SHIPPED_SEAL,
)
from shmbroker.core.record import record_bytes, record_kind, record_length
from shmbroker.ipc.base.system import system_checksum
from shmbroker.ipc.journal.place import FRAME_BITS
from shmbroker.ipc.journal.records import COPIED, SEGMENTS

CHECKSUM_MASK = 0xFFFFFFFF
BODY_SHIFT = 32
BODY_MAX = 1 << 31
WORD = 8


@kernel
def head_checksum(covered: int, seed: int, offset: int, at: int) -> int:
    """Of the record there, which is at this offset of its file; `covered` is room for both."""
    store(covered, offset)
    copy(covered + WORD, at, RECORD_HEAD_BYTES)
    store(covered + WORD, load(at) & ~CHECKSUM_MASK)
    return system_checksum(seed, covered, WORD + RECORD_HEAD_BYTES)


# --- what checks ----------------------------------------------------------------------------------


@kernel
def is_blank(at: int) -> int:
    return int(load(at) == 0 and load(at + 8) == 0 and load(at + 16) == 0 and load(at + 24) == 0)


@kernel
def head_checks(checking: int, at: int) -> int:
    offset = load(checking + CHECKING_OFFSET) + at - load(checking + CHECKING_AT)
    seed = load(checking + CHECKING_SEED)
    found = head_checksum(checking + CHECKING_COVERED, seed, offset, at)
    return int(load(at) & CHECKSUM_MASK == found and record_length(at) <= BODY_MAX)


@cold
def stored_check(checking: int, at: int) -> int:
    """OK, or what is wrong with the record there: EMPTY, there are zeros; INVALID, its head does
    not check; DAMAGED, its body does not; TOO_SMALL, it is not whole."""
    before = at - load(checking + CHECKING_AT)
    left = load(checking + CHECKING_END) - at
    store(checking + CHECKING_NEEDED, before + RECORD_HEAD_BYTES)
    if left < RECORD_HEAD_BYTES:
        return TOO_SMALL
    if is_blank(at):
        return EMPTY
    if not head_checks(checking, at):
        return INVALID
    whole = record_bytes(record_length(at))
    store(checking + CHECKING_NEEDED, before + whole)
    if left < whole:
        return TOO_SMALL
    body = system_checksum(0, at + RECORD_HEAD_BYTES, whole - RECORD_HEAD_BYTES)
    return OK if (load(at) >> BODY_SHIFT) & CHECKSUM_MASK == body else DAMAGED


@kernel
def frame_of(at: int) -> int:
    return (load(at + RECORD_LENGTH_AT) >> RECORD_FRAME_SHIFT) & CHECKSUM_MASK


@exported_cold
def frame_check(checking: int) -> int:
    """OK: the next frame is whole, up to `checked`; or what is wrong with its record there, as
    stored_check says.  It goes on behind the records that were found good before."""
    at = load(checking + CHECKING_CHECKED)
    while not load(checking + CHECKING_WHOLE):
        code = stored_check(checking, at)
        if code != OK:
            return code
        if frame_of(at) != load(checking + CHECKING_NUMBER):
            return INVALID  # of this segment and this place, and not of this frame
        store(checking + CHECKING_WHOLE, load(at + RECORD_WHERE_AT) & RECORD_IS_LAST)
        at += record_bytes(record_length(at))
        store(checking + CHECKING_CHECKED, at)
    return OK


@kernel
def checking_pass(checking: int) -> int:
    """All that checks is done with."""
    at, end = load(checking + CHECKING_AT), load(checking + CHECKING_CHECKED)
    store(checking + CHECKING_OFFSET, load(checking + CHECKING_OFFSET) + end - at)
    store(checking + CHECKING_WHOLE, 0)
    return store(checking + CHECKING_AT, end)


@kernel
def frame_pass(checking: int) -> int:
    checking_pass(checking)
    return store(checking + CHECKING_NUMBER, load(checking + CHECKING_NUMBER) + 1)


@exported_cold
def frames_check(checking: int) -> int:
    """Pass frames that are whole: what is wrong with the next one, as frame_check says."""
    while True:
        code = frame_check(checking)
        if code != OK:
            return code
        frame_pass(checking)


# --- what is left of a damaged one ----------------------------------------------------------------


@exported_cold
def records_salvage(checking: int) -> int:
    """Pass records that check, of whatever frames: what is wrong with the next one."""
    while True:
        at = load(checking + CHECKING_AT)
        code = stored_check(checking, at)
        if code != OK:
            return code
        store(checking + CHECKING_NUMBER, frame_of(at))
        store(checking + CHECKING_CHECKED, at + record_bytes(record_length(at)))
        checking_pass(checking)


@kernel
def record_behind(at: int) -> int:
    """How many frames before this one may not have been synced when it was written."""
    return (load(at + RECORD_WHERE_AT) >> RECORD_BEHIND_SHIFT) & RECORD_BEHIND_MAX


@exported_cold
def records_search(checking: int, lowest: int, highest: int, is_synced: int) -> int:
    """OK: a record begins at `checked` whose number is in this range; EMPTY: none does before that.
    is_synced: the number counts less how many frames its writer was ahead of the disk."""
    at, end = load(checking + CHECKING_CHECKED), load(checking + CHECKING_END)
    code = EMPTY
    while code == EMPTY and at + RECORD_HEAD_BYTES <= end:
        number = frame_of(at) - (record_behind(at) if is_synced else 0)
        if lowest <= number <= highest and head_checks(checking, at):
            code = OK
        else:
            at += WORD
    store(checking + CHECKING_CHECKED, at)
    return code


# --- passing what checks --------------------------------------------------------------------------


@kernel
def place_is(place: int, other: int) -> int:
    return int(
        load(place + PLACE_NUMBER) == load(other + PLACE_NUMBER)
        and load(place + PLACE_EPOCH) == load(other + PLACE_EPOCH)
        and load(place + PLACE_SEAL) == load(other + PLACE_SEAL)
        and load(place + PLACE_CHAIN) == load(other + PLACE_CHAIN)
    )


@exported_cold
def shipped_chain(chain: int, number: int, seal: int, shipped: int, length: int) -> int:
    """The chain behind these records, of a frame with this number: -1 if they are not whole.

    It is over the heads, which have the CRCs of their bodies: so it costs nothing for large
    messages, and who has sent and who has received them compute it over the same bytes.
    """
    at, end = shipped, shipped + length
    found = seal if number & CHECKSUM_MASK == 1 else chain
    while end - at >= RECORD_HEAD_BYTES:
        if record_length(at) > BODY_MAX or record_bytes(record_length(at)) > end - at:
            return -1
        found = system_checksum(found, at, RECORD_HEAD_BYTES)
        at += record_bytes(record_length(at))
    return found & CHECKSUM_MASK if at == end else -1


@cold
def passing_note(checking: int, passing: int) -> int:
    """The frame that was found whole is the last one now."""
    at, end = load(checking + CHECKING_AT), load(checking + CHECKING_CHECKED)
    number, seal = load(checking + CHECKING_NUMBER), load(checking + CHECKING_SEED)
    last, repeated = passing + PASSING_LAST, passing + PASSING_REPEATED
    chain = shipped_chain(load(last + PLACE_CHAIN), number, seal, at, end - at)
    fill(repeated, 0, PLACE_BYTES)
    while at < end:
        kind = record_kind(at)
        if kind == COPIED and record_length(at) == PLACE_BYTES:
            copy(repeated, at + RECORD_HEAD_BYTES, PLACE_BYTES)
        elif kind == SEGMENTS:
            before = at - load(checking + CHECKING_AT)
            store(passing + PASSING_LIST, load(checking + CHECKING_OFFSET) + before)
        at += record_bytes(record_length(at))
    store(last + PLACE_NUMBER, (load(passing + PASSING_SERIAL) << FRAME_BITS) | number)
    store(last + PLACE_EPOCH, load(passing + PASSING_EPOCH))
    store(last + PLACE_SEAL, seal)
    return store(last + PLACE_CHAIN, chain)


@cold
def passing_put(checking: int, passing: int) -> int:
    """Behind what was put there: the frame that was passed just now, as it is shipped."""
    to, last = load(passing + PASSING_TO), passing + PASSING_LAST
    at = load(checking + CHECKING_AT)
    length = load(checking + CHECKING_CHECKED) - at
    whole = SHIPPED_HEAD_BYTES + length
    store(to + SHIPPED_NUMBER, load(last + PLACE_NUMBER))
    store(to + SHIPPED_AFTER, load(passing + PASSING_AFTER))
    store(to + SHIPPED_EPOCH, load(last + PLACE_EPOCH))
    store(to + SHIPPED_SEAL, load(last + PLACE_SEAL))
    store(to + SHIPPED_CHAIN, load(last + PLACE_CHAIN))
    store(to + SHIPPED_LENGTH, length)
    copy(to + SHIPPED_HEAD_BYTES, at, length)
    store(passing + PASSING_AFTER, load(last + PLACE_NUMBER))
    store(passing + PASSING_TO, to + whole)
    return store(passing + PASSING_ROOM, load(passing + PASSING_ROOM) - whole)


@exported_cold
def frames_pass(checking: int, passing: int) -> int:
    """Pass frames that are whole.  OK: the last one is, or repeats, the one that is looked for;
    TOO_LARGE: there is no room for the next; else what is wrong with it, as frame_check says."""
    while True:
        code = frame_check(checking)
        if code != OK:
            return code
        if load(passing + PASSING_TO):
            length = load(checking + CHECKING_CHECKED) - load(checking + CHECKING_AT)
            store(passing + PASSING_NEEDED, SHIPPED_HEAD_BYTES + length)
            if SHIPPED_HEAD_BYTES + length > load(passing + PASSING_ROOM):
                return TOO_LARGE
        passing_note(checking, passing)
        if load(passing + PASSING_TO):
            passing_put(checking, passing)
        frame_pass(checking)
        wanted = passing + PASSING_WANTED
        if load(wanted + PLACE_NUMBER) and (
            place_is(passing + PASSING_LAST, wanted) or place_is(passing + PASSING_REPEATED, wanted)
        ):
            return OK
