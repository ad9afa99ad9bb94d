"""The journal's part of shmbroker.h: what must survive, in files."""

from __future__ import annotations

from shmbroker.ipc.journal import records

JOURNAL = """\
/* --- the journal ---
 * Records in a folder of segments.  What is staged becomes one frame, which a commit writes and
 * syncs: it is there as a whole, or not at all.  One thread at a time, and one process, whose right
 * to write is not looked at here. */

typedef struct sb_journal sb_journal;
typedef struct sb_found sb_found;

/* Stage what a new segment begins with: everything that is not a message and must be known. */
typedef int64_t (*sb_journal_snapshot)(sb_journal *journal, void *context);
/* Whether a message is needed: 1 or 0. */
typedef int64_t (*sb_journal_needed)(int64_t queue, int64_t position, void *context);

typedef struct sb_journal_options {
    int64_t segment_bytes; /* 0: 64 MiB; a multiple of 4096, at least 4 of it */
    int64_t spares;        /* segments out of use that are kept for reuse; 0: 2 */
    const void *node;      /* 16 bytes, noted in each segment; NULL: zeros */
    sb_journal_snapshot snapshot; /* NULL: nothing */
    void *context;
    int64_t reserve; /* 1: the room of one segment is set aside, or of more, for whoever begins when
                      * the disk is full, after the writer was killed */
} sb_journal_options;

typedef struct sb_journal_record {
    int64_t kind, queue, position;
    const void *body; /* until the next call */
    int64_t length;
    int64_t serial, offset; /* where it lies: which segment, and which byte of it */
    int64_t frame;          /* the number of its frame, see sb_frame_text */
    int64_t last;           /* 1: the last one of its frame */
} sb_journal_record;

/* Records of a segment, one behind the other, each checked. */
typedef struct sb_batch {
    const void *records;
    int64_t bytes;
    int64_t serial, offset; /* where they lie */
} sb_batch;

typedef struct sb_journal_statistics {
    int64_t serial, offset;   /* where the next frame begins */
    int64_t frame;            /* the number of the last one that this writer has written, or 0 */
    int64_t segments, bytes;  /* that are needed, the one in use included */
    int64_t spares;           /* written over and ready, or soon */
    int64_t unknown;          /* segments of before, not yet looked through */
    int64_t damaged;          /* of those: they are kept */
    int64_t live_bytes;       /* of messages, estimated */
    int64_t frames, records, recycled, deleted, made, waited; /* so far; waited: for a segment */
} sb_journal_statistics;

/* A frame has one number through all segments: its segment's serial, and in the SB_FRAME_BITS below
 * which commit of the segment it was, from 1 on.  Later frames have higher numbers.  As all that
 * prints it does: 7:12 is frame 12 of segment 0000000000000007.journal.  Up to SB_FRAME_TEXT_BYTES
 * with the end of the text: its length. */
int64_t sb_frame_text(int64_t number, char *text);

/* Write a journal.  First get a segment ready (in a thread of its own, nothing in the folder is
 * looked at); then begin it, after the highest there is.  SB_STALE: one of a higher epoch is there.
 * If that fails, it may be called again, or the journal closed. */
int64_t sb_journal_prepare(const char *folder, const sb_journal_options *options,
                           sb_journal **journal);
int64_t sb_journal_begin(sb_journal *journal, int64_t epoch);
/* What was found needs not be looked for in the background: which segments are needed, where they
 * end, what is in them.  After prepare, before begin; all of the journal was read. */
int64_t sb_journal_adopt(sb_journal *journal, const sb_found *found);
/* The files that are ready when it is closed stay for whoever begins next: to remove them takes
 * milliseconds each. */
void sb_journal_leave(sb_journal *journal);
/* From any thread, before it begins: whether a segment is ready.  SB_OK; SB_EMPTY: not yet;
 * SB_DISK_FULL: there was no room, and another try is made. */
int64_t sb_journal_prepared(sb_journal *journal);
/* From any thread: what it has ready is left to who comes next, and nothing is got ready but what a
 * commit waits for. */
void sb_journal_quiet(sb_journal *journal);
/* What is staged and not committed is forgotten. */
void sb_journal_close(sb_journal *journal);

/* One more record for the frame that is gathered; the body is copied.  position: below 2^48.
 * SB_INVALID, SB_TOO_LARGE, SB_NO_MEMORY: it is not staged. */
int64_t sb_journal_stage(sb_journal *journal, int64_t kind, int64_t queue, int64_t position,
                         const void *body, int64_t length);
/* Messages of a queue at positions one after the other; their bodies lie end to end. */
int64_t sb_journal_stage_many(sb_journal *journal, int64_t queue, int64_t position,
                              const void *bodies, const int64_t *lengths, int64_t count);
/* How many bytes of the log are staged. */
int64_t sb_journal_staged(sb_journal *journal);
/* Begin to write what is staged, as far as it is whole pages: so that the disk works while more is
 * staged.  It is there after the commit, and not before.  SB_JOURNAL_FAILED: as of a commit. */
int64_t sb_journal_ahead(sb_journal *journal);
/* Write and sync what is staged, if anything is, or if the segment is new.
 * SB_DISK_FULL: nothing has happened, it stays staged; commit again when there is room.
 * SB_JOURNAL_FAILED: it is unknown what the disk has; every call says so from now on.
 * What the snapshot answers, if that is not SB_OK: it stays staged as well. */
int64_t sb_journal_commit(sb_journal *journal);
/* All messages of the queue below the position are not needed any more.  Nothing is written: stage
 * a record of it before.  SB_JOURNAL_ALL: all there will ever be. */
int64_t sb_journal_retire(sb_journal *journal, int64_t queue, int64_t position);
/* Commit, and let go of segments in which no message is needed: how many.  A commit that begins a
 * segment does so too. */
int64_t sb_journal_clear(sb_journal *journal);
/* The serial of the oldest segment of which at most `share` percent are needed, and where it ends;
 * SB_EMPTY: there is none.  With 100 percent: of those that were there when the journal began. */
int64_t sb_journal_sparse(sb_journal *journal, int64_t share, int64_t *end);
/* Stage again what is needed of these records, until so many bytes of the log are staged: how many
 * bytes of them were looked at. */
int64_t sb_journal_move(sb_journal *journal, const sb_batch *batch, int64_t most,
                        sb_journal_needed needed, void *context);
/* All that is needed of a segment is staged: once that is committed, it can go; or it cannot be
 * read. */
void sb_journal_moved(sb_journal *journal, int64_t serial, int64_t is_all);
int64_t sb_journal_statistics_of(sb_journal *journal, sb_journal_statistics *told);
/* From any thread: segments from this serial on stay (SB_JOURNAL_ALL: none for that), and so many
 * bytes of the newest (-1: all), also if nothing in them is needed; unless the disk is full. */
void sb_journal_keep(sb_journal *journal, int64_t from, int64_t bytes);
/* Wait until the thread of the journal has nothing to do. */
int64_t sb_journal_wait(sb_journal *journal, int64_t timeout_ns);

typedef struct sb_found_counts {
    int64_t records, frames, messages, bytes;
    int64_t frame; /* the number of the last one that is whole, or 0 */
} sb_found_counts;

/* What is in the segments of a journal, for who reads all of it. */
int64_t sb_found_open(sb_found **found);
/* The next records of the segment that is read. */
int64_t sb_found_add(sb_found *found, const sb_batch *batch);
/* All of this segment was told, and it ends there. */
int64_t sb_found_end(sb_found *found, int64_t serial, int64_t end);
void sb_found_counted(const sb_found *found, sb_found_counts *counts);
void sb_found_close(sb_found *found);
"""


def journal_enumerators() -> list[str]:
    kinds = {name: value for name, value in vars(records).items() if isinstance(value, int)}
    named = [f"    SB_RECORD_{name} = {value}," for name, value in kinds.items()]
    return [*named, "    SB_FRAME_BITS = 32,", "    SB_FRAME_TEXT_BYTES = 32,"]
