/* What nobody takes at another broker goes back to whoever published it: into the queue that the
 * publisher has for that (sb_returns_to), with the exchange and why.  Its place is with the message
 * as long as that waits for its agent: journey.c. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "message/message.h"
#include "queue/queue.h"
#include "ring/ring.h"
#include "sink/sink.h"
#include "vhost/vhost.h"

#define EXCHANGE "returned.exchange"
#define REASON "returned.reason"
#define REASON_MAX 255

/* The reference of the queue with this identity. */
static int64_t queue_with(sb_connection *connection, const int64_t identity[2])
{
    void *catalog = connection->catalog.memory;
    for (int64_t row = 0; row < L_QUEUE_ROWS; row++) {
        int64_t entry = sb_catalog_entry_at(L_QUEUES, row);
        int64_t reference = sb_row_reference(catalog, L_QUEUES, row);
        if (reference >= 0 && word_load(catalog, entry + L_QUEUE_IDENTITY_HIGH_AT) == identity[0] &&
            word_load(catalog, entry + L_QUEUE_IDENTITY_LOW_AT) == identity[1])
            return reference;
    }
    return SB_NOT_FOUND;
}

static int64_t give_back(sb_connection *connection, int64_t reference, const sb_outgoing *message,
                         const char *exchange, const char *why)
{
    const text_pair pairs[] = {
        {EXCHANGE, exchange, (int64_t)strlen(exchange), false},
        {REASON, why, (int64_t)strnlen(why, REASON_MAX), false},
    };
    sb_queue *queue;
    sb_receipt where;
    sb_outgoing copy = *message;
    unsigned char *noted = malloc((size_t)message->properties_length + 3 +
                                  PAIR_ROOM(EXCHANGE, L_NAME_BYTES_MAX) +
                                  PAIR_ROOM(REASON, REASON_MAX));
    int64_t code = noted ? queue_find(connection, reference, &queue)
                         : fail_system("memory for a message");
    if (code == SB_OK) {
        int64_t length = properties_with(noted, message->properties, message->properties_length,
                                         pairs, 2);
        copy.properties = length < 0 ? message->properties : noted;
        copy.properties_length = length < 0 ? message->properties_length : length;
        code = publish_receipt(queue, &copy, 0, &where);
        queue_looked(queue);
    }
    free(noted);
    return code;
}

int64_t sb_record_return(sb_connection *connection, const void *record, int64_t bytes,
                         const char *exchange, const char *why)
{
    poured_record found;
    sb_outgoing message;
    int64_t identity[2];
    int64_t code = record_next(record, (const char *)record + bytes, &found);
    if (code == SB_OK && (!found.is_message || record_outgoing(&found, 0, &message) != SB_OK))
        return fail(SB_INVALID, "a record that is none");
    if (code != SB_OK)
        return code;
    char *plain = malloc((size_t)message.properties_length + 3);
    if (!plain)
        return fail_system("memory for a message");
    code = journey_publisher(&message, plain, identity);
    int64_t reference = code == SB_OK ? queue_with(connection, identity) : SB_NOT_FOUND;
    if (reference >= 0)
        code = give_back(connection, reference, &message, exchange, why);
    free(plain);
    return reference < 0 ? SB_NOT_FOUND : code < 0 ? code : SB_OK;
}
