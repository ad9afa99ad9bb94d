"""Of the header: frames as they are read from segments, and shipped to another journal."""

from __future__ import annotations

from typing import Final

from shmbroker.core.layout import RECORD_HEAD_BYTES
from shmbroker.ipc.base.structure import Field, Structure

PLACE: Final = Structure(
    "sb_place",
    "The name of a frame, with all that is before it in its segment.",
    "PLACE_BYTES",
    (
        Field("int64_t number", "PLACE_NUMBER", "0: none"),
        Field("int64_t epoch", "PLACE_EPOCH"),
        Field("int64_t seal", "PLACE_SEAL"),
        Field("int64_t chain", "PLACE_CHAIN"),
    ),
)
SHIPPED: Final = Structure(
    "sb_shipped",
    "A frame in a buffer; its records are behind this.",
    "SHIPPED_HEAD_BYTES",
    (
        Field("int64_t number", "SHIPPED_NUMBER"),
        Field("int64_t after", "SHIPPED_AFTER", "the one before; 0: nobody knows of one"),
        Field("int64_t epoch", "SHIPPED_EPOCH"),
        Field("int64_t seal", "SHIPPED_SEAL"),
        Field("int64_t chain", "SHIPPED_CHAIN"),
        Field("int64_t bytes", "SHIPPED_LENGTH", "of the records"),
    ),
)
CHECKING: Final = Structure(
    "sb_checking",
    "A segment as it is read: what of it is in memory, and checked.",
    "CHECKING_BYTES",
    (
        Field("int64_t at", "CHECKING_AT", "address of the next frame,"),
        Field("int64_t end", "CHECKING_END", "and of where what was read ends"),
        Field("int64_t offset", "CHECKING_OFFSET", "where the frame is in its file"),
        Field("int64_t number", "CHECKING_NUMBER", "which one of its segment it is"),
        Field("int64_t seed", "CHECKING_SEED", "of the segment"),
        Field("int64_t checked", "CHECKING_CHECKED", "address: its records below check"),
        Field("int64_t whole", "CHECKING_WHOLE", "not 0: they are all of the frame"),
        Field("int64_t needed", "CHECKING_NEEDED", "bytes of it, as far as is known"),
        Field(f"int64_t covered[{(8 + RECORD_HEAD_BYTES) // 8}]", "CHECKING_COVERED"),
    ),
)
PASSING: Final = Structure(
    "sb_passing",
    "Where the frames of segments go, and which one was the last.",
    "PASSING_BYTES",
    (
        Field("int64_t to", "PASSING_TO", "address where they are copied to, 0: nowhere"),
        Field("int64_t room", "PASSING_ROOM", "bytes that are left there"),
        Field("int64_t needed", "PASSING_NEEDED", "of which the next wants so many"),
        Field("int64_t serial", "PASSING_SERIAL", "of the segment"),
        Field("int64_t epoch", "PASSING_EPOCH", "and its epoch"),
        Field("int64_t after", "PASSING_AFTER", "the number of the last that was copied"),
        Field("sb_place last", "PASSING_LAST", "that was passed"),
        Field("sb_place repeated", "PASSING_REPEATED", "by that one, or none"),
        Field("sb_place wanted", "PASSING_WANTED", "the one that is looked for, or none"),
        Field("int64_t list", "PASSING_LIST", "offset of the last list of segments, or 0"),
    ),
)
FRAMES: Final = (PLACE, SHIPPED, CHECKING, PASSING)

SHIPPING: Final = f"""\
/* --- frames on their way to another journal ---
 * In a buffer frames lie one behind the other: a head, sb_shipped, and the records as in the file.
 * The chain of a frame is a CRC over the heads of all records of its segment up to its end, which
 * begins with the seal of the segment, the CRC of its header.  So number, seal and chain name a
 * frame with all that is before it in its segment, whoever has written it. */

{PLACE.text()}{SHIPPED.text()}{CHECKING.text()}{PASSING.text()}
/* What an end reads, as it is shipped: one for each end. */
typedef struct sb_tail {{
    sb_end *end;
    int64_t chain;     /* of the frame that was read last, */
    int64_t last;      /* and its number */
    sb_end_frame held; /* read, and there was no room for it; memory: NULL if there is none */
}} sb_tail;

/* Frames that the end is told of: how many bytes, 0: there are none, SB_TOO_LARGE: the next alone
 * takes more room (held.bytes and a head), or as sb_end_next. */
int64_t sb_tail_read(sb_tail *tail, void *to, int64_t room);
void sb_tail_close(sb_tail *tail);
"""
