/* The writer's state, for the files that it is in: journal.c, sync.c, relist.c, needed.c,
 * compaction.c. */

#ifndef SHMBROKER_JOURNAL_WRITER_H
#define SHMBROKER_JOURNAL_WRITER_H

#include "journal/audit.h"
#include "journal/format.h"
#include "journal/store.h"

#define NOT_MOVED INT64_C(-2)
#define SYNC_BYTES_MAX (INT64_C(8) << 20) /* that may be written ahead of a sync */

/* A segment that is not written any more. */
typedef struct segment_state {
    int64_t serial, end;
    enum { SEGMENT_UNKNOWN, SEGMENT_KNOWN, SEGMENT_DAMAGED, SEGMENT_UNNEEDED } state;
    tally tally;
    runs_found runs; /* its messages, until the auditor was told */
    /* all that is needed was staged anew, and is committed by more commits than so */
    int64_t moved;
    bool dropped; /* the list that is about to be written does not have it */
} segment_state;

struct sb_journal {
    sb_journal_options options;
    folder in;
    store *store;
    written current; /* the segment that is written */
    bool fresh;      /* it has no frame yet */
    bool borrowed; /* of the reserve, and it was not whole since */
    bool in_snapshot, adopted;
    bool turns; /* the next commit begins a segment */
    bool holds; /* no segment goes before one has begun with a snapshot */
    /* segments from this serial on stay, and so many of the newest; `yields`: not while the disk is
     * full */
    _Atomic int64_t keeps_from, keeps_newest;
    bool yields;
    void (*told_written)(void *context); /* between write and sync, or NULL */
    void *told_context;
    struct {
        bool is_later; /* a commit writes, and others sync */
        pthread_mutex_t mutex; /* of what follows; and the current file is closed under it */
        int64_t written, synced; /* the last frames of the current segment that are so */
        int64_t bytes;           /* written since it was synced */
        int error;               /* of a sync beside the writer */
    } sync;
    int64_t end, number; /* of the current segment: where the next frame begins, and its number */
    int64_t first_serial; /* of those that we have written */
    int64_t epoch;
    int64_t last;         /* the number of the last frame, through all segments */
    int64_t commits;
    frame frame;   /* what is staged */
    struct ends *ends;
    tally written; /* what the current segment has */
    tally heads;   /* below `high` nothing of a queue is needed */
    tally then;    /* the same once it is written */
    segment_state *segments; /* ascending */
    int64_t segment_count, segment_room;
    int64_t failed;
    char text[512];
    journal_auditor auditor; /* or zeros */
    int64_t reached_at;      /* when it was noted last how far it was synced */
    listed noted;            /* and how far */
    struct {
        int64_t frames, records;
    } counts;
};

/* --- journal/journal.c ------------------------------------------------------------------------ */

/* Whether it has begun and not failed. */
int64_t journal_usable(const sb_journal *journal);
/* With some codes it has failed for good. */
int64_t journal_fatal(sb_journal *journal, int64_t code);
/* This frame, at the end of the current segment: written, and synced if that is not done later. */
int64_t journal_write_frame(sb_journal *journal, frame *out);

/* --- journal/sync.c --------------------------------------------------------------------------- */

void sync_begin(sb_journal *journal);
void sync_end(sb_journal *journal);
/* How many frames of the current segment are written and not synced. */
int64_t sync_behind(sb_journal *journal);
/* One more may be written without a sync. */
int64_t sync_make_room(sb_journal *journal);
/* One more is, with so many bytes. */
void sync_written(sb_journal *journal, int64_t bytes);
/* The current segment, which is synced or empty, is followed by this one. */
void sync_turn_over(sb_journal *journal, const written *next);

/* --- journal/needed.c ------------------------------------------------------------------------- */

/* The one with this serial; NULL: there is none. */
segment_state *segment_with(sb_journal *journal, int64_t serial);
/* One more, of which nothing is known; it is the last.  NULL: there is no memory. */
segment_state *segment_note(sb_journal *journal, int64_t serial);
void segment_forget(sb_journal *journal, int64_t serial);
void segments_free(sb_journal *journal);
/* Take over what was found out in the background. */
void segments_learn(sb_journal *journal);
/* How many are not needed any more. */
int64_t segments_dead(const sb_journal *journal);
/* Those of before that are needed are these. */
int64_t segments_inherit(sb_journal *journal, const segment_list *list);
/* Take the heads that are about to be written for those that hold; `before` has those of before. */
int64_t heads_advance(sb_journal *journal, tally *before, bool with_all);
/* They could not be written. */
void heads_restore(sb_journal *journal, tally *before);
/* The frame was that they were waiting for. */
void heads_written(sb_journal *journal);
/* The list of those that are needed, as a record; the others are dropped when it is synced. */
int64_t list_stage(sb_journal *journal, frame *to);
/* How many bytes such a list has at most. */
int64_t list_bytes(const sb_journal *journal);
/* And how many a frame of its own takes, wherever in a page it begins. */
static inline int64_t room_beside(int64_t bytes)
{
    return JOURNAL_PAGE + frame_written_bytes(bytes);
}
/* The list is synced: let go of what was dropped: how many. */
int64_t segments_recycle(sb_journal *journal);

#endif
