/* The state of the store of segments, for store.c, spare.c and learn.c. */

#ifndef SHMBROKER_JOURNAL_SPARE_H
#define SHMBROKER_JOURNAL_SPARE_H

#include "journal/format.h"
#include "journal/store.h"

#define SPARES_MAX 64

typedef struct spare {
    char name[SEGMENT_NAME_ROOM];
    int file;
    int64_t bytes;
} spare;

typedef struct serials {
    int64_t *all;
    int64_t count, room;
} serials;

struct store {
    folder in; /* somebody else's */
    int64_t segment_bytes, spares_max;
    uint8_t node[16];
    pthread_mutex_t mutex;
    pthread_cond_t asked, done;
    pthread_t thread;
    bool busy;
    _Atomic bool stop, leaves; /* what is ready, to whoever begins next */
    bool holds_back; /* the first frame comes first, and what is confirmed just behind it */
    int64_t held_until; /* so long, once the first frame is there; 0: it is not */
    bool claims, clears; /* what others have left */
    _Atomic bool syncs_rarely; /* many frames at once: spares are not written over */
    int64_t epoch, serial; /* of the next one; 0: they have no names yet */
    spare spares[SPARES_MAX];
    int64_t spare_count;
    bool keeps_reserve; /* at all; then so many segments: */
    _Atomic int64_t reserve_wanted, reserve_count;
    bool asks_reserve;         /* to be set aside, if there is room */
    bool owes_reserve;         /* it was used: the next segments that die take its place */
    reserve_use opens_reserve; /* whoever waits for a segment may have it */
    bool is_tight;     /* there was no room: others may want what is not needed at once */
    bool skips_serial; /* its name is taken, by what could not be removed */
    bool gives_way;    /* all of this is to go: one larger than that is wanted */
    spare reserve[RESERVE_MAX];
    written ready;
    int64_t ready_code; /* SB_OK: it is; SB_EMPTY: it is to be got ready; or why it is not */
    serials dead; /* below 0: damaged, to be set aside */
    serials unknown; /* and what is known of their ends, behind each */
    bool with_runs;
    listed reached; /* to be noted, or zeros */
    learnt *found;
    int64_t found_count, found_room;
    store_counts counts;
    char text[512]; /* of the ready_code */
};

/* --- spare.c ---------------------------------------------------------------------------------- */

/* Remove it. */
void spare_drop(const store *of, spare *dropped);
/* Remove it, or leave it to whoever begins next. */
void spare_give(const store *of, spare *given);
/* A file of so many bytes, written over. */
int64_t spare_make(store *of, int64_t bytes, spare *made);
/* All that is to be set aside is. */
bool reserve_is_whole(const store *of);
/* Set a segment of the reserve aside: whether there was room. */
bool reserve_make(store *of);
/* What a former writer has left, or who has died: as far as it is wanted. */
void spares_claim(store *of);
/* On a full disk: what the dead have left, or the reserve. */
int64_t spare_find(store *of, reserve_use opens, spare *found);
/* Its header, and then its name: what has the name of a segment is one. */
int64_t spare_become(store *of, const spare *from, int64_t serial, written *made);
/* A segment that no list has becomes a spare, the reserve, or goes. */
void segment_recycle(store *of, int64_t serial, bool is_awaited);
/* A damaged one keeps its content, under another name. */
void segment_set_aside(const store *of, int64_t serial);

/* --- learn.c ---------------------------------------------------------------------------------- */

/* Look through the next segment that is unknown; the mutex is held, and let go meanwhile. */
void store_learn_one(store *of);

/* --- store.c ---------------------------------------------------------------------------------- */

/* The first; there is one. */
int64_t serials_pop(serials *from);

#endif
