"""The applier's part of the private header: a journal becomes the rings of a vhost."""

from __future__ import annotations

from typing import Final

from shmbroker.ipc.base.structure import Field, Structure

APPENDING: Final = Structure(
    "sb_appending",
    "What is known of a ring to which records are appended.",
    "APPENDING_BYTES",
    (
        Field("int64_t later", "APPENDING_LATER", "to be added to an expiry of that boot"),
        Field("int64_t ahead", "APPENDING_AHEAD", "the time of day is, of the clock"),
        Field("int64_t is_schedule", "APPENDING_IS_SCHEDULE"),
        Field("int64_t last_id", "APPENDING_LAST_ID", "of a schedule: that was given"),
        Field("int64_t holes_below", "APPENDING_HOLES_BELOW",
              "positions for which no message came yet are below this one"),
    ),
)  # fmt: skip

APPLIER = f"""\
/* --- the applier: what a journal has, appended to rings that have no names yet --- */

{APPENDING.text()}
/* Others do not see the vhost before sb_applier_show.  For one thread, but where it is said. */
typedef struct sb_applier sb_applier;

/* Of a vhost that was begun by sb_restore_begin: frames of another journal, as they come.  journal:
 * a frame is written there first, sealed anew; of segments that are at least twice as large as
 * those of the original, and without a snapshot.  Or NULL.  number: of the last frame that it has,
 * 0 none. */
int64_t sb_applier_open(sb_connection *connection, sb_journal *journal, int64_t number,
                        sb_applier **applier);
/* Of one that was created just now: nobody else may declare anything before all has its name, so
 * it is locked. */
int64_t sb_applier_open_alone(sb_connection *connection, sb_applier **applier);

/* SB_UNDECIDED, of this and of all that have a `record`: the caller has to note that one, which is
 * of the kinds CATALOG, STANDING and UNPLACED, or has dropped what was noted of UNPLACED (QUEUES);
 * then sb_applier_more goes on.
 *
 * SB_DUPLICATE: it was applied before.  SB_GONE: frames are missing before it.  SB_JOURNAL_DAMAGED:
 * a record does not check, and nothing was done.  With anything else it has failed for good. */
int64_t sb_applier_apply(sb_applier *applier, const sb_end_frame *frame, sb_journal_record *record);
/* Frames as they are shipped, one after the other; such as were applied before are passed over.
 * event: an eventfd that is counted up when one is written, or -1.  SB_STALE: of an epoch below one
 * that was met. */
int64_t sb_applier_frames(sb_applier *applier, const void *frames, int64_t bytes, int64_t event,
                          sb_journal_record *record);
int64_t sb_applier_more(sb_applier *applier, sb_journal_record *record);
/* What its own journal has, which goes on behind that: the batch stays where it is until all of it
 * is applied. */
int64_t sb_applier_records(sb_applier *applier, const sb_batch *batch, sb_journal_record *record);

/* The last frame of the original that it has; number 0: none. */
void sb_applier_place(const sb_applier *applier, sb_place *place);
/* The original has it under this name: what follows comes behind it. */
void sb_applier_go_on(sb_applier *applier, const sb_place *place);
/* From any thread: the number of the last frame that is in a file of its journal. */
int64_t sb_applier_written(sb_applier *applier);
/* In another thread than the one that applies, which may go on: sync what is written.  If nobody
 * does, it is done now and then by the one that applies. */
int64_t sb_applier_sync(sb_applier *applier);
/* From any thread: the number of the last frame that was written before such a sync. */
int64_t sb_applier_synced(sb_applier *applier);

/* A queue that it has. */
typedef struct sb_restored {{
    int64_t number; /* in the journal */
    int64_t flags, slots, created, replicate;
    int64_t of;     /* of a schedule and an inbox: the number of its queue */
    const void *ring;
    const char *name;
}} sb_restored;
/* How many there are; so many of them are told. */
int64_t sb_applier_queues(const sb_applier *applier, sb_restored *told, int64_t room);
/* One more, by the body of its SB_RECORD_QUEUE; this one is no more. */
int64_t sb_applier_declare(sb_applier *applier, int64_t number, const void *body, int64_t length);
void sb_applier_forget(sb_applier *applier, int64_t number);
/* What was written is synced, and nobody else changes the catalog until it is unlocked. */
int64_t sb_applier_lock(sb_applier *applier);
void sb_applier_unlock(sb_applier *applier);
/* This schedule or inbox is that of this queue: before they have names. */
void sb_applier_beside(sb_applier *applier, int64_t number, int64_t of);
/* All queues get their names, and nothing more is applied.  `counts`: how many messages they have,
 * which takes a look at each. */
int64_t sb_applier_put(sb_applier *applier, int64_t counts);
/* The vhost is there for others. */
void sb_applier_show(sb_applier *applier);
typedef struct sb_unpublished {{
    int64_t queue; /* its number */
    const void *chunk;
    int64_t length;
}} sb_unpublished;
/* Publish these to queues that are still there, as one transaction of somebody who is gone. */
int64_t sb_applier_commit(sb_applier *applier, const sb_unpublished *several, int64_t count);
/* What has no name is removed. */
void sb_applier_close(sb_applier *applier);
"""
