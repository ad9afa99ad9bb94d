/* An applier: records of a journal appended to rings, before there is a name for any of them.
 *
 * applier.c appends; copied.c takes frames of another journal as they come; restore.c gives rings
 * their rows in the catalog.  What is not of a single queue is Python's (restoring.py). */

#ifndef SHMBROKER_BROKER_APPLIER_H
#define SHMBROKER_BROKER_APPLIER_H

#include "broker/broker.h"
#include "catalog/catalog.h"
#include "ring/ring.h"

typedef struct restored {
    struct restored *next; /* of the same hash */
    declaration_head head;
    int64_t number, row;
    sb_appending how;
    bool has_chunks; /* blocks of the arena name its row */
    bool is_there;   /* the catalog has it */
    bool is_closed;  /* its port */
    int64_t listed;  /* the number of the last list of queues that names it */
    int64_t of;      /* of a schedule: the number of its queue */
    char name[L_NAME_BYTES_MAX + 1];
    segment ring;
    dedup_read once;
    sb_port port;
} restored;

#define HASHES 4096

struct sb_applier {
    sb_connection *connection;
    sb_journal *journal; /* into which frames are written first, or NULL */
    restored *queues[HASHES];
    int64_t number, epoch, seal, chain; /* of the last frame that was applied, 0: none */
    sb_place next;  /* that is being applied: */
    sb_end_frame frame;
    const sb_batch *batch; /* of our own journal, instead; or NULL */
    int64_t at;     /* its records below are */
    const unsigned char *shipped, *end; /* and what follows */
    bool is_locked; /* the catalog, by us */
    bool reads;     /* its own journal */
    bool is_replica; /* it has the journal of the original, and not its pages */
    int event;      /* told when a frame is written, or -1 */
    _Atomic int64_t written; /* the number of the last that was, */
    _Atomic int64_t synced;  /* and of the last that was synced */
    int64_t failed; /* SB_OK, or what has stopped it, and why */
    char why[512];
    int64_t mapped; /* bytes that were applied since connections_unmap */
    int64_t lists;
    int64_t rows, spare_count, marked_count;
    int32_t spare[L_QUEUE_ROWS];           /* rows of queues that are gone */
    int32_t marked[L_QUEUE_ROWS];          /* the same, but blocks of the arena still name them */
    int64_t marks[(L_QUEUE_MASK + 1) / 64]; /* a bit for each of the latter */
};

/* --- applier.c -------------------------------------------------------------------------------- */

/* The queue with this number in the journal; NULL is at the place of one that is not there. */
restored **applier_place(sb_applier *all, int64_t number);
void applier_path(const sb_applier *all, const restored *queue, char *path);
/* A chunk as long as its record, reserved by this port and filled: its offset. */
int64_t applier_chunk(restored *queue, sb_port *port, const void *body, int64_t length);
/* Append what one record says; SB_UNDECIDED: Python has to know of it, too. */
int64_t applier_record(sb_applier *all, const sb_journal_record *record);
/* The last frame of the original that it has. */
void applier_reached(sb_applier *all, const sb_place *place);
/* The queue at this place is no more. */
void applier_forget(sb_applier *all, restored **at);
/* Give back what queues have that are gone. */
void applier_forget_gone(sb_applier *all);
/* It goes on no more, for this reason. */
void applier_failed(sb_applier *all, int64_t code);

/* --- copied.c --------------------------------------------------------------------------------- */

/* What comes is written there first. */
void applier_journals(sb_applier *all, sb_journal *journal);

#endif
