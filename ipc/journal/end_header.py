"""The ends' part of shmbroker.h: to whom frames of a journal go beside the disk."""

from __future__ import annotations

END = """\
/* --- ends: to whom the frames of a journal go beside the disk ---
 * The calls of an end are for one thread at a time, which is another one than the writer's. */

typedef struct sb_end sb_end;

typedef struct sb_end_options {
    const char *name;   /* for people */
    int64_t timeout_ns; /* while it counts: without progress for so long, with frames in flight, it
                         * is dropped */
    int64_t bytes_max;  /* with more than so many in flight, the writer waits for it if it counts,
                         * and drops it if it does not; one frame may always be in flight */
    int64_t counts;     /* 1: it is a replica that is in sync (sb_end_count) */
    int64_t after;      /* the number of the last frame that it has; 0: from the next one on */
} sb_end_options;

typedef struct sb_end_frame {
    int64_t number;
    int64_t after; /* the number of the one before; 0: this writer has written none before it */
    int64_t epoch;
    const void *records; /* as in the file, sealed for the place that they have there */
    int64_t bytes;
    void *memory; /* for sb_end_frame_free; the frame stays as long as it is wanted */
    int64_t seal; /* the CRC of its segment's header, which has a random salt */
} sb_end_frame;

typedef struct sb_end_state {
    int64_t counts;
    int64_t done;    /* all frames up to this number are done with */
    int64_t told;    /* and up to this one they were offered */
    int64_t frames, bytes; /* in flight */
} sb_end_state;

/* An end of this journal, from any thread.  SB_GONE: frames after that number were written that are
 * not in flight any more; read them from the segments.  SB_CLOSED: no more frames come. */
int64_t sb_journal_attach(sb_journal *journal, const sb_end_options *options, sb_end **end);
/* It is in sync, as it has what was written until now or is told of it: a replica, of which a
 * journal has at most 8, each with a name of its own.  What is written from now on has the level
 * `replicated` when this end is done with it, too, and each durable queue has a gate of its name.
 * The number of the last frame before; SB_IN_USE; SB_TOO_MANY; SB_CLOSED. */
int64_t sb_end_count(sb_end *end);
/* The next frame, which may not be synced yet: SB_OK; SB_EMPTY; SB_CLOSED: it was dropped, or the
 * writer has ended, sb_detail says why. */
int64_t sb_end_next(sb_end *end, sb_end_frame *frame);
void sb_end_frame_free(void *memory);
/* Until sb_end_next has something to say: SB_OK, SB_EMPTY: not in time, SB_INTERRUPTED. */
int64_t sb_end_wait(sb_end *end, int64_t timeout_ns);
/* What poll finds readable as long as that is so: an eventfd, not to be read. */
int64_t sb_end_descriptor(const sb_end *end);
/* All frames up to this number, which was offered, are done with.  SB_INVALID, SB_CLOSED. */
int64_t sb_end_done(sb_end *end, int64_t number);
void sb_end_state_of(sb_end *end, sb_end_state *state);
/* Nothing waits for it any more.  Frames that are not freed stay. */
void sb_end_detach(sb_end *end);
"""
