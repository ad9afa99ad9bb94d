/* Ends: to whom the frames of a journal go beside the disk, as the writer sees them (end.c). */

#ifndef SHMBROKER_JOURNAL_END_H
#define SHMBROKER_JOURNAL_END_H

#include "base/base.h"

#define END_LINE_ROOM 256
#define END_NAME_ROOM 64
#define REPLICAS_MAX 8

typedef struct ends ends;

/* An end that counts is a replica.  Its number stays its own until the writer has let go of it. */
typedef struct end_replica {
    bool is_used;  /* this number */
    bool is_there; /* it was not dropped or detached */
    char name[END_NAME_ROOM];
    int64_t done; /* all frames up to this one */
} end_replica;

int64_t ends_make(ends **made);
/* No frame comes any more: the ends are told why, and stay until they are detached. */
void ends_close(ends *of, const char *why);
/* The writer needs them no more. */
void ends_free(ends *of);
int64_t ends_attach(ends *to, const sb_end_options *options, sb_end **made);
/* This word is counted up, and who sleeps on it is woken, when there may be something to do. */
void ends_wake(ends *of, _Atomic int64_t *word);
/* A frame is written, and not yet synced; and the number of the last one that was. */
void ends_offer(ends *to, const sb_end_frame *frame);
/* Counted up when ends_replicas may say something else than before. */
int64_t ends_news(ends *of);
void ends_replicas(ends *of, end_replica replicas[REPLICAS_MAX]);
/* It was dropped or detached, and the writer has let go of it. */
void ends_replica_forget(ends *of, int64_t number);
void ends_replica_drop(ends *of, int64_t number, const char *why);
/* Whether one more frame may be written: an end that counts may have too much in flight. */
bool ends_have_room(ends *of);
/* Drop those that have not progressed in time; when the first of the others is to be dropped. */
int64_t ends_drop_overdue(ends *of, int64_t now);
/* Of one that was dropped, and of each once: a line of END_LINE_ROOM bytes. */
bool ends_dropped(ends *of, char *line);

#endif
