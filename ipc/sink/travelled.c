/* Messages that came over a network link, from the queue of another broker into ours.  They do not
 * travel again: so two brokers that fetch from each other pass no message to and fro.
 *
 * The mark is in the word for the target, which a message that has arrived needs no more. */

#include "base/base.h"
#include "queue/queue.h"
#include "sink/sink.h"

void sb_sink_travels(sb_sink *sink)
{
    sink->travels = true;
}

static bool has_travelled(const sb_message *message)
{
    return message->mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT &&
           word_load(message->chunk, L_CHUNK_TARGET_AT) == SB_TRAVELLED;
}

int64_t sb_is_fetched(const sb_message *message, void *fetch)
{
    const sb_fetch *given = fetch;
    return !has_travelled(message) && message->position % given->cycle == given->turn;
}
