/* The journal: records in segments on a disk, written a frame at a time, read again after a crash,
 * and which segments are still needed.  What records say of queues is not known here.  It stands on
 * base; format.h has what its files look like, writer.h and store.h the state of whoever writes. */

#ifndef SHMBROKER_JOURNAL_ROOM_H
#define SHMBROKER_JOURNAL_ROOM_H

#include "base/base.h"

/* --- journal.c -------------------------------------------------------------------------------- */

/* The next commit begins a segment, whatever room there is. */
void journal_turn_over(sb_journal *journal);
/* Whether the next commit of what is staged would begin one by itself, or has just begun one. */
bool journal_begins_segment(const sb_journal *journal);
/* Call this, in the writer's thread, when a frame is written and not yet synced. */
void journal_tell_written(sb_journal *journal, void (*told)(void *), void *context);
/* The number of the last frame that it has written, 0: none. */
int64_t journal_last_frame(const sb_journal *journal);
/* To whom its frames go beside the disk: end.h. */
struct ends *journal_ends(const sb_journal *journal);
/* sb_journal_commit, and if there is no room, into the reserve, provided that what was told by
 * journal_retire_then makes a segment dead; or, if it borrows, into all of the reserve but the
 * last. */
int64_t journal_commit_full(sb_journal *journal, bool borrows);
/* How many segments the reserve has; it may be more than one for who borrows. */
void journal_reserves(sb_journal *journal, int64_t segments);
/* Whether what was borrowed of the reserve, or used to begin on a full disk, is still missing
 * there; then it is tried again. */
bool journal_owes(sb_journal *journal);

/* --- relist.c --------------------------------------------------------------------------------- */

/* Write only what was told by journal_retire_then, ahead of all that is staged, into the room that
 * each segment keeps for it: how many segments are let go of.  If there is none, nothing is
 * written. */
int64_t journal_relieve(sb_journal *journal);

/* --- sync.c ----------------------------------------------------------------------------------- */

/* From now on a commit only writes: only what begins or lets go of a segment is synced at once. */
void journal_syncs_later(sb_journal *journal);
/* All that is written is synced. */
int64_t journal_sync(sb_journal *journal);
/* The same in another thread than the writer's, which may go on meanwhile. */
int64_t journal_sync_beside(sb_journal *journal);

/* --- staging.c -------------------------------------------------------------------------------- */

/* Stage a record of another journal, which lies there with its head.  SB_JOURNAL_DAMAGED: its body
 * does not check. */
int64_t journal_stage_record(sb_journal *journal, const void *record, int64_t bytes);
/* Nothing is staged any more. */
void journal_stage_nothing(sb_journal *journal);

/* --- needed.c --------------------------------------------------------------------------------- */

/* While it holds, no segment is let go of: what it began with last has no snapshot. */
void journal_holds(sb_journal *journal, bool holds);
/* As sb_journal_retire, once it is written: by journal_relieve, or with the frame that is staged,
 * if there is a record of it in that. */
int64_t journal_retire_then(sb_journal *journal, int64_t queue, int64_t position);
/* Whether all segments were looked through, so that it is known which are needed. */
bool journal_is_known(const sb_journal *journal);
/* These queues are there: of others nothing is needed that is in the segments of before, once it is
 * written which there are. */
int64_t journal_retire_others(sb_journal *journal, const int64_t *queues, int64_t count);

#endif
