/* Histograms of the times that messages take. */

#ifndef SHMBROKER_LATENCY_ROOM_H
#define SHMBROKER_LATENCY_ROOM_H

#include "base/base.h"

/* --- latency.c -------------------------------------------------------------------------------- */

/* The clock of a lane, and where it counts times; all zero but for the queue at first. */
typedef struct recorder {
    stamp_clock clock; /* this and what follows: see L_RECORDING_* */
    int64_t number;
    int64_t where[(L_RECORDING_BYTES - L_RECORDING_COUNTS) / 8];
    int64_t refused; /* number of the histograms that cannot be used */
    int64_t stripe;  /* that is ours, 0 everybody's */
    int64_t kinds;   /* how many are counted, from the first on */
    segment histograms;
    sb_queue *queue;
} recorder;

_Static_assert(offsetof(stamp_clock, cycles) == L_CLOCK_CYCLES &&
               offsetof(stamp_clock, window) == L_CLOCK_WINDOW &&
               offsetof(stamp_clock, factor) == L_CLOCK_FACTOR &&
               offsetof(stamp_clock, base_ns) == L_CLOCK_BASE &&
               offsetof(recorder, number) == L_RECORDING_NUMBER &&
               offsetof(recorder, where) == L_RECORDING_COUNTS, "as the kernels have it");

void histograms_path(char *path, const char *vhost, int64_t reference, int64_t number);
/* Unmap, and let another have the stripe; or only unmap, if our participant has left. */
void recorder_close(recorder *closed);
void recorder_free(recorder *freed);
/* Whether times of the queue are to be recorded, now and here. */
bool recorder_is_asked(const recorder *with);
/* Count how long it is since these moments (CHUNK_PUBLISHED_AT). */
void recorder_count(recorder *with, int64_t kind, const int64_t *since, int64_t count);
/* The dead one counts no more: how many stripes it had. */
int64_t latency_sweep(sb_queue *queue, int64_t dead);
void latency_remove(sb_connection *connection, int64_t reference);

typedef struct lane lane;

#endif
