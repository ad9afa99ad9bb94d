/* A consumer in C: of the wide queue, one message or several at once. */

#include "payload.h"

#define PATIENCE_NS 100000000
#define BATCH 8

static sb_queue *queue;

static void deal_with(sb_message *message)
{
    record about = {.kind = GOT, .queue = WIDE, .position = message->position,
                    .length = (uint32_t)message->length,
                    .deliveries = (uint8_t)sb_message_deliveries(message)};
    if (!body_read(message->body, message->length, &about.identity, &about.number))
        about.kind = DAMAGED;
    note(about);
    double fate = chance();
    if (fate < 0.1 &&
        !body_read(message->body, message->length, &about.identity, &about.number)) {
        about.kind = DAMAGED;
        note(about);
    }
    if (fate > 0.1 && fate < 0.15) {
        must(sb_give_back(queue, message), "giving back");
        about.kind = GAVE;
    } else {
        about.kind = ACKING;
        note(about);
        must(sb_ack(queue, message), "acknowledging");
        about.kind = ACKED;
    }
    note(about);
}

int main(int count, char **arguments)
{
    sb_message messages[BATCH];
    sb_connection *connection = begin(count, arguments);
    must(sb_open_queue(connection, "wide", &queue), "opening wide");
    while (!is_over) {
        int64_t taken = chance() < 0.5 ? sb_get_many(queue, messages, BATCH, PATIENCE_NS)
                                       : sb_get(queue, messages, PATIENCE_NS);
        if (taken == SB_OK)
            taken = 1;
        if (taken == SB_EMPTY || taken == SB_INTERRUPTED)
            continue;
        must(taken, "taking");
        for (int64_t each = 0; each < taken; each++)
            deal_with(&messages[each]);
    }
    must(sb_disconnect(connection), "leaving");
    sb_connection_free(connection);
    return 0;
}
