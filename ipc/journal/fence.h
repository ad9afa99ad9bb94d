/* Whether we may still write, and what the broker asks of a journal. */

#ifndef SHMBROKER_FENCE_ROOM_H
#define SHMBROKER_FENCE_ROOM_H

#include "base/base.h"

/* --- fence.c: whether we may still write ------------------------------------------------------ */

#define EPOCH_DIGITS 16 /* hexadecimal */

/* A file or folder that is open, and the path at which others look for it. */
typedef struct open_path {
    char *path;
    dev_t device;
    ino_t inode;
} open_path;

#define PLACES_MAX 2

typedef struct fence {
    int file; /* begins with the epoch of who may write; -1: nobody else can */
    char epoch[EPOCH_DIGITS + 1];
    const _Atomic int64_t *lease; /* until when we may, by the clock of the boot, or NULL */
    open_path places[PLACES_MAX];
    int64_t place_count, looked_at;
} fence;

void fence_begin(fence *made, int64_t epoch);
/* SB_OK or SB_STALE, as far as the lease says; and both. */
int64_t fence_lease(const fence *at);
int64_t fence_check(fence *at);
/* This file has to stay at this path: SB_SYSTEM. */
int64_t fence_place(fence *at, int file, const char *path);
/* Whether all are there, now and then; SB_JOURNAL_FAILED if not. */
int64_t fence_look(fence *at);
void fence_end(fence *at);

/* --- journal.c, on a full disk ---------------------------------------------------------------- */

/* Whether the segment that was to be got ready is: SB_OK, SB_EMPTY: not yet, or why not. */
int64_t journal_prepared(sb_journal *journal);
/* As sb_journal_retire, once it is written: by journal_relieve, or with the frame that is staged, if
 * there is a record of it in that. */
int64_t journal_retire_then(sb_journal *journal, int64_t queue, int64_t position);
/* Whether all segments were looked through, so that it is known which are needed. */
bool journal_is_known(const sb_journal *journal);
/* Write only what was told by journal_retire_then, ahead of all that is staged, into the room that each
 * segment keeps for it: how many segments are let go of.  If there is none, nothing is written. */
int64_t journal_relieve(sb_journal *journal);
/* sb_journal_commit, and if there is no room, into the reserve, provided that what was told by
 * journal_retire_then makes a segment dead. */
int64_t journal_commit_full(sb_journal *journal);

/* --- journal/needed.c: which segments are needed ---------------------------------------------- */

/* These queues are there: of others nothing is needed that is in the segments of before, once it is
 * written which there are. */
int64_t journal_retire_others(sb_journal *journal, const int64_t *queues, int64_t count);

#endif
