"""The part of shmbroker.h about frames on their way to another journal."""

from __future__ import annotations

SHIPPING = """\
/* --- frames on their way to another journal ---
 * In a buffer frames lie one behind the other: a head, sb_shipped, and the records as in the file.
 * The chain of a frame is a CRC over the heads of all records of its segment up to its end, which
 * begins with the seal of the segment, the CRC of its header.  So number, seal and chain name a
 * frame with all that is before it in its segment, whoever has written it. */

typedef struct sb_place {
    int64_t number; /* of a frame; 0: none */
    int64_t epoch, seal, chain;
} sb_place;

typedef struct sb_shipped {
    int64_t number;
    int64_t after; /* the number of the one before; 0: nobody knows of one */
    int64_t epoch, seal, chain;
    int64_t bytes; /* of the records behind this head */
} sb_shipped;

/* What an end reads, as it is shipped: one for each end. */
typedef struct sb_tail {
    sb_end *end;
    int64_t chain;     /* of the frame that was read last, */
    int64_t last;      /* and its number */
    sb_end_frame held; /* read, and there was no room for it; memory: NULL if there is none */
} sb_tail;

/* Frames that the end is told of: how many bytes, 0: there are none, SB_TOO_LARGE: the next alone
 * takes more room (held.bytes and a head), or as sb_end_next. */
int64_t sb_tail_read(sb_tail *tail, void *to, int64_t room);
void sb_tail_close(sb_tail *tail);

/* All that is needed of a journal, frame by frame, out of its files, while it is written: it goes
 * on where the writer is.  For one thread. */
typedef struct sb_history sb_history;
int64_t sb_history_open(const char *folder, sb_history **history);
/* Go on behind that frame, which may be one that a frame of this journal repeats: it tells which
 * one here.  SB_GONE: the files do not have it, or not all that comes behind it. */
int64_t sb_history_seek(sb_history *history, const sb_place *place);
/* The same of a frame that this journal is known to have had, and with what is needed only:
 * segments that were let go of since are passed over. */
int64_t sb_history_resume(sb_history *history, const sb_place *place);
/* The next frames: how many bytes, 0: there are none yet, SB_TOO_LARGE: the next alone takes so
 * many bytes: *wanted.  SB_GONE: a segment was let go of meanwhile. */
int64_t sb_history_read(sb_history *history, void *to, int64_t room, int64_t *wanted);
/* The last frame that was read or found. */
void sb_history_place(const sb_history *history, sb_place *place);
/* The oldest segment that is still to be read. */
int64_t sb_history_serial(const sb_history *history);
void sb_history_close(sb_history *history);
/* The last whole frame of a journal that nobody writes, and the frame that it repeats, whose number
 * is 0 if it is none. */
int64_t sb_journal_last_place(const char *folder, sb_place *place, sb_place *repeated);
"""
