/* The state of the pager and of a queue that pages, for the files that they are in; see pager.c. */

#ifndef SHMBROKER_PAGING_PAGER_H
#define SHMBROKER_PAGING_PAGER_H

#include <limits.h>

#include "paging/paging.h"
#include "ring/ring.h"

#define FOLDER_NAME_BYTES 32

typedef struct paged {
    sb_pager *pager;
    sb_queue *queue, *inbox;
    sb_port in, out;
    sb_cursor cursor; /* of the inbox */
    page_store *store;
    int64_t next;       /* all below is in the ring, or dropped: a position in the inbox */
    int64_t bytes_left; /* at least so many may be put into the ring */
    bool is_full;       /* the disk is */
    bool durable;
    bool awaits_journal; /* with what is in the inbox */
    int64_t gate;        /* ours, of the inbox: behind the journal's if there is one */
    int64_t put;         /* all that was put into the ring is below */
    int64_t direct;      /* the same, of what is in no file */
    int64_t safe;        /* all of that below is in the journal again */
    int64_t marked;      /* `put` at one moment, */
    int64_t marked_tail; /* and the tail of the ring then */
    struct paged *before;
} paged;

struct sb_pager {
    sb_connection *connection;
    pthread_t thread;
    char folder[PATH_MAX - FOLDER_NAME_BYTES - 64];
    bool has_folder;
    int64_t page_bytes;
    int64_t epoch;
    fence fence;
    _Atomic int64_t stopping, code;
    paged *queues;
    sb_wait *waits;
    int64_t count;
    int64_t generation; /* of the catalog, when we looked at it last */
    int64_t nap_ns;
    char why[512];
};

/* --- paged.c ---------------------------------------------------------------------------------- */

void paged_tell(void *context, const char *text);
void paged_set_next(paged *each, int64_t next);
void paged_mark(paged *each);
int64_t paged_serve(paged *each, bool *waits);

/* --- paged_queues.c --------------------------------------------------------------------------- */

int64_t pager_look_at_catalog(sb_pager *pager);
void pager_remove_left(sb_pager *pager);
void pager_leave_all(sb_pager *pager);

#endif
