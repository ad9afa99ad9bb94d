/* Ends: to whom the frames of a journal go beside the disk, as the writer sees them (end.c). */

#ifndef SHMBROKER_JOURNAL_END_H
#define SHMBROKER_JOURNAL_END_H

#include "base/base.h"

#define END_LINE_ROOM 256

typedef struct ends ends;

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
/* Up to this number frames are done at all ends that count. */
int64_t ends_done(ends *of);
/* Whether one more frame may be written: an end that counts may have too much in flight. */
bool ends_have_room(ends *of);
/* Drop those that have not progressed in time; when the first of the others is to be dropped. */
int64_t ends_drop_overdue(ends *of, int64_t now);
/* Of one that was dropped, and of each once: a line of END_LINE_ROOM bytes. */
bool ends_dropped(ends *of, char *line);

#endif
