/* What a vhost consists of, as bodies of records of the journal. */

#ifndef SHMBROKER_CATALOG_ROOM_H
#define SHMBROKER_CATALOG_ROOM_H

#include "base/base.h"

/* --- declaration.c: what a vhost consists of, as bodies of the journal's records -------------- */

typedef struct declaration_head {
    int64_t identity[2]; /* the queue's; the second is its number in the journal */
    int64_t slots, flags, created;
    int64_t monotonic, realtime; /* one moment by both clocks: expiry is monotonic, of one boot */
    int64_t name_length, settings_length;
} declaration_head;

#define DECLARATION_ROOM (sizeof(declaration_head) + L_NAME_BYTES_MAX + L_PAGE_BYTES)

/* The body that declares a queue, from its handle and its entry: its length; SB_NOT_FOUND for the
 * schedule of a queue that is gone. */
int64_t declaration_of(sb_queue *queue, const char *entry, char *body);
/* And back: its name, and a page of settings as if it were in a ring.  SB_JOURNAL_DAMAGED. */
int64_t declaration_read(const void *body, int64_t length, declaration_head *head, char *name,
                         char *page);
/* Stage all exchanges, and what they are bound to that lasts. */
int64_t catalog_stage(sb_connection *connection, sb_journal *journal);
/* The ring of a queue in this row, without a name; its name; and its row, once it is filled.
 * All (connection.c) under the catalog's lock. */
int64_t ring_begin(sb_connection *connection, segment *ring, int64_t row, int64_t slots,
                   const char *settings);
int64_t ring_name(sb_connection *connection, const segment *ring, int64_t reference);
int64_t queue_put(sb_connection *connection, int64_t row, const char *name,
                  const declaration_head *declared);
/* What catalog_stage would stage, in short: it is the same as long as this is. */
uint64_t catalog_digest(sb_connection *connection);
/* And back, of one record: SB_NOT_FOUND if it needs another one first. */
int64_t catalog_declare(sb_connection *connection, const void *body, int64_t length);

#endif
