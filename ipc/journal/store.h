/* Files for segments, got ready by a thread: what the writer of a journal asks for.  How a file
 * becomes a segment, and what becomes of one that is not needed, is told in store.c. */

#ifndef SHMBROKER_JOURNAL_STORE_H
#define SHMBROKER_JOURNAL_STORE_H

#include "journal/format.h"

/* --- store.c ---------------------------------------------------------------------------------- */

/* A segment that is written. */
typedef struct written {
    int file;
    int64_t serial, bytes;
    uint32_t seed;
} written;

/* Messages of a queue, one after the other. */
typedef struct run_found {
    int64_t queue, first, last;
} run_found;

typedef struct runs_found {
    run_found *all;
    int64_t count, room;
} runs_found;

/* What was found in a segment of before. */
typedef struct learnt {
    int64_t serial, end, code; /* SB_OK, SB_NOT_FOUND, or it is damaged */
    tally tally;
    runs_found runs;
    char text[256]; /* what is wrong with it */
} learnt;

typedef struct store_counts {
    int64_t spares, recycled, deleted, made, waited;
} store_counts;

typedef struct store store;

#define RESERVE_MAX 3

/* What of the room that is set aside may be used. */
typedef enum reserve_use { RESERVE_NONE, RESERVE_BUT_LAST, RESERVE_ALL } reserve_use;

/* The thread begins to get a segment ready. */
int64_t store_start(store **made, const folder *in, const sb_journal_options *options);
/* From now on segments have names: from this serial on, which is that of the first. */
int64_t store_begin(store *of, int64_t epoch, int64_t serial, written *first);
/* Whether a spare is there: SB_OK, SB_EMPTY while one is made, or why there is none, and another
 * try is made. */
int64_t store_prepared(store *of);
/* The first has its frame: get the next one ready, and look after the rest. */
void store_go_on_soon(store *of);
/* A segment with room for so many bytes in all, waiting for it; on a full disk, of the reserve what
 * may be used. */
int64_t store_take(store *from, int64_t bytes, reserve_use opens, written *taken);
/* So many segments' room is to be set aside, if there is to be a reserve at all. */
void store_reserves(store *of, int64_t segments);
/* Whether all of it is there; if not, it is tried again. */
bool store_has_reserve(store *of);
/* Whether the last segment that was to be made had no room. */
bool store_is_tight(store *of);
/* From now on a spare is room for a segment, and not written over. */
void store_syncs_rarely(store *of);
/* Segments that are on no list any more. */
void store_recycle(store *of, int64_t serial);
/* The same of one that is damaged: the file is kept for people, under another name. */
void store_set_aside(store *of, int64_t serial);
/* Look through these in the background; with their messages, one by one, if so asked. */
int64_t store_learn(store *of, const listed *entries, int64_t count, bool with_runs);
/* One that was looked through: whether there is any. */
bool store_learnt(store *of, learnt *told);
/* So far it was synced: the thread notes it, for a write to any file may wait for the disk. */
void store_note(store *of, const listed *reached);
void store_counted(store *of, store_counts *counts);
/* Until all that was asked for is done: SB_OK, or SB_EMPTY when the time is over. */
int64_t store_wait(store *of, int64_t timeout_ns);
/* What is ready when it stops is for whoever begins next, who finds it there. */
void store_leave(store *of);
/* The same, and nothing is got ready any more but what the writer waits for: to stop it is quick
 * then. */
void store_quiet(store *of);
/* Its thread ends, and what was ready and not taken is removed, or left. */
void store_stop(store *stopped);

/* --- spare.c ---------------------------------------------------------------------------------- */

/* Write so many bytes there: SB_OK, SB_DISK_FULL or SB_JOURNAL_FAILED. */
int64_t write_all(int file, const unsigned char *bytes, int64_t count, int64_t at);

#endif
