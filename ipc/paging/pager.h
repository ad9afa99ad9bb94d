/* The state of the pager and of a queue that pages, for pager.c, paged.c and paged_queues.c. */

#ifndef SHMBROKER_PAGING_PAGER_H
#define SHMBROKER_PAGING_PAGER_H

#include <limits.h>

#include "base/base.h"
#include "follower/follower.h"
#include "paging/page_store.h"

#define FOLDER_NAME_BYTES 32

typedef struct paged {
    sb_pager *pager;
    sb_queue *queue, *inbox;
    ready_one news, put_news; /* of the inbox; and the journal has what was put into the ring */
    sb_port in, out;
    sb_cursor cursor; /* of the inbox */
    page_store *store;
    int64_t next;       /* all below is in the ring, or dropped: a position in the inbox */
    int64_t bytes_left; /* at least so many may be put into the ring */
    bool is_full;       /* the disk is */
    bool tells_full;    /* and whoever asks is told so, until it has taken all for a while */
    int64_t full_at;    /* when it was last */
    bool durable;
    bool awaits_journal; /* with what is in the inbox */
    int64_t gate;        /* ours, of the inbox: behind the journal's if there is one */
    int64_t put;         /* all that was put into the ring is below */
    int64_t direct;      /* the same, of what is in no file */
    int64_t safe;        /* all of that below is in the journal again */
    int64_t marked;      /* `put` at one moment, */
    int64_t marked_tail; /* and the tail of the ring then */
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
    following following; /* of inboxes: each is a paged */
    ready_set ready;
    int64_t passed_at; /* when all were looked at last */
    bool is_full;      /* the disk is, for one of them */
    sb_wait *waits;
    int64_t nap_ns;
    char why[512];
};

/* --- paged.c ---------------------------------------------------------------------------------- */

/* Told by its files, for the log. */
void paged_tell(void *context, const char *text);
/* All below is out of inbox and files; others see it in the ring. */
void paged_set_next(paged *each, int64_t next);
/* What is in the ring now is safe when the journal has passed it there. */
void paged_mark(paged *each);
/* Move what can be moved: how many messages, or a code.  *waits: some are left. */
int64_t paged_serve(paged *each, bool *waits);
/* It has nothing to move until a bell is rung: unless there is something by now. */
void paged_rest(paged *each);

/* --- paged_queues.c --------------------------------------------------------------------------- */

/* At the beginning, before the first look. */
int64_t pager_follow(sb_pager *pager);
/* If the catalog has changed: follow what pages now, and let go of what was deleted.  The first
 * time that goes well, also remove the files of queues that are no more: of a vhost that was, or
 * deleted while nobody paged. */
int64_t pager_look_at_catalog(sb_pager *pager);
/* At the end. */
void pager_leave_all(sb_pager *pager);

#endif
