/* The page files of one queue: messages are put behind all others and read in the same order.  What
 * a file looks like, and when it goes, is told in page_store.c. */

#ifndef SHMBROKER_PAGING_PAGE_STORE_H
#define SHMBROKER_PAGING_PAGE_STORE_H

#include "base/base.h"

typedef struct page_store page_store;

typedef struct paged_message {
    int64_t position;
    const void *chunk; /* NULL: there is none; all below the position is done with */
    int64_t length;
    int64_t later; /* to be added to its expiry */
} paged_message;

/* --- page_store.c ----------------------------------------------------------------------------- */

/* Of a durable queue, whose files are synced. */
typedef struct page_safety {
    int64_t epoch;
    int64_t next;   /* all below is out of the files */
    int64_t backed; /* all from here on is in the inbox */
} page_safety;

/* Told of what is wrong with a file. */
typedef void (*page_teller)(void *context, const char *text);

/* The files in this folder, which is made with the first.  safety: NULL, nothing is synced. */
int64_t page_store_open(const char *folder, int64_t page_bytes, const page_safety *safety,
                        page_teller told, void *context, page_store **opened);
void page_store_close(page_store *closed);
/* Remove the files and the folder. */
void page_store_remove(const char *folder);
/* Drop all that is there, which is below this position. */
int64_t page_store_clear(page_store *of, int64_t position);
/* All of them are read, and there are no files any more. */
bool page_store_is_empty(const page_store *of);
/* Of all that are there. */
int64_t page_store_bytes(const page_store *of);

/* --- page_writer.c ---------------------------------------------------------------------------- */

/* Put a message behind all others, in a file by page_store_write at the latest: SB_OK,
 * SB_DISK_FULL, SB_SYSTEM. */
int64_t page_store_put(page_store *to, const paged_message *message);
/* Write what was put, in one write, and sync it if it is of a durable queue. */
int64_t page_store_write(page_store *to);
/* So much was put that it is written before more is. */
bool page_store_is_due(const page_store *of);
/* Forget what was put since it was written. */
void page_store_forget(page_store *to);

/* --- page_reader.c ---------------------------------------------------------------------------- */

/* The oldest message, until page_store_pass: SB_OK, or SB_EMPTY; or why it cannot be read. */
int64_t page_store_look(page_store *from, paged_message *message);
/* It is done with: the next one. */
void page_store_pass(page_store *from);
/* The journal has all below this position again: files with nothing else go, if they were read. */
void page_store_journaled(page_store *of, int64_t position);

#endif
