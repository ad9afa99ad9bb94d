/* A producer in C: to the wide queue, and now and then to the work queue. */

#include "payload.h"

#define PATIENCE_NS 50000000

int main(int count, char **arguments)
{
    static unsigned char body[HEADER_BYTES + LARGE_BYTES];
    sb_queue *queues[2];
    sb_connection *connection = begin(count, arguments);
    uint64_t identity = strtoull(arguments[2], NULL, 10), number = 0;
    must(sb_open_queue(connection, "wide", &queues[0]), "opening wide");
    must(sb_open_queue(connection, "work", &queues[1]), "opening work");
    while (!is_over) {
        int work = chance() < 0.2;
        sb_outgoing message = {
            .body = body,
            .length = body_fill(body, identity, number, (uint32_t)random_length()),
            .key = "from.c",
            .key_length = chance() < 0.5 ? 6 : 0,
        };
        int64_t position = sb_publish_message(queues[work], &message, PATIENCE_NS);
        if (position == SB_FULL || position == SB_INTERRUPTED)
            continue; /* nothing was published: the number is still to be used */
        must(position, "publishing");
        note((record){.kind = CONFIRMED, .queue = work ? WORK : WIDE, .identity = identity,
                      .number = number, .position = position});
        number++;
    }
    must(sb_disconnect(connection), "leaving");
    sb_connection_free(connection);
    return 0;
}
