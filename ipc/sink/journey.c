/* Where messages have been that come from a message transfer agent, so that rings of brokers end.
 *
 * They say it only on their way, in a queue of an agent and on the wire: by the word for the
 * target,
 *
 *     "mta" << 16 | over how many agents it may go << 8 | an id was given << 7 |
 *     over how many it has gone
 *
 * and, if it has gone over any, by the last of its properties: "$mta", the ids of the nodes where
 * it was published, in their order.  Whoever takes it here sees neither. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "message/message.h"
#include "ring/ring.h"
#include "sink/sink.h"

#define HOPS_MASK 0x7F
#define NODE_BYTES 16
#define NODES_MAX 15 /* more than that is more than one byte can count */
#define NAME "\xA4$mta\xC4" /* text of 4 bytes; bytes, of a length in one byte */
#define NAME_BYTES 6
#define BEFORE (NAME_BYTES + 1)
#define ENTRY_MAX (BEFORE + NODES_MAX * NODE_BYTES)
#define MAP_SHORT 15
#define MAP_LONG 0xDE
#define HEAD_LONG 3

/* Properties as they are published here, or go on. */
typedef struct made {
    int64_t length;
    char bytes[L_PROPERTIES_BYTES_MAX + ENTRY_MAX + HEAD_LONG];
} made;

struct journey {
    char here[NODE_BYTES], from[NODE_BYTES];
    int64_t hops; /* up to here */
    bool compares; /* their ids, as where they were published */
    made plain, onward;
};

int64_t sb_target_of_agent(int64_t hops_max)
{
    return OF_AGENT << 16 | (hops_max & 0xFF) << 8;
}

int64_t sb_sink_of_agent(sb_sink *sink, const void *here, const void *from)
{
    journey *been = calloc(1, sizeof *been);
    if (!been)
        return fail_system("memory for a sink");
    memcpy(been->here, here, NODE_BYTES);
    memcpy(been->from, from, NODE_BYTES);
    free(sink->journey);
    sink->journey = been;
    return SB_OK;
}

/* How many properties there are, and the bytes that say it; less than 0: it is no map. */
static int64_t map_count(const char *bytes, int64_t length, int64_t *head)
{
    unsigned char first = length > 0 ? (unsigned char)bytes[0] : 0x80;
    *head = length > 0;
    if ((first & 0xF0) == 0x80)
        return first & 0x0F;
    *head = HEAD_LONG;
    if (first != MAP_LONG || length < HEAD_LONG)
        return SB_INVALID;
    return (int64_t)(unsigned char)bytes[1] << 8 | (unsigned char)bytes[2];
}

/* The same properties under another count, without the last `less` bytes. */
static void map_copy(made *to, const char *bytes, int64_t length, int64_t head, int64_t count,
                     int64_t less)
{
    int64_t rest = length - head - less;
    to->length = 0;
    if (count == 0)
        return;
    if (count <= MAP_SHORT) {
        to->bytes[to->length++] = (char)(0x80 | count);
    } else {
        to->bytes[to->length++] = (char)MAP_LONG;
        to->bytes[to->length++] = (char)(count >> 8);
        to->bytes[to->length++] = (char)count;
    }
    memcpy(to->bytes + to->length, bytes + head, (size_t)rest);
    to->length += rest;
}

/* Where it was before, which is the last property. */
static const char *nodes_of(const sb_outgoing *message, int64_t hops)
{
    int64_t bytes = BEFORE + hops * NODE_BYTES;
    const char *entry = (const char *)message->properties + message->properties_length - bytes;
    if (hops > NODES_MAX || message->properties_length < bytes + 1 ||
        memcmp(entry, NAME, NAME_BYTES) != 0 ||
        (unsigned char)entry[NAME_BYTES] != hops * NODE_BYTES)
        return NULL;
    return entry + BEFORE;
}

static bool was_here(const journey *been, const char *nodes, int64_t hops)
{
    for (int64_t each = 0; each < hops; each++)
        if (memcmp(nodes + each * NODE_BYTES, been->here, NODE_BYTES) == 0)
            return true;
    return memcmp(been->from, been->here, NODE_BYTES) == 0;
}

int64_t journey_read(sb_sink *sink, const sb_outgoing *message)
{
    journey *been = sink->journey;
    bool is_agents = message->target >> 16 == OF_AGENT;
    int64_t head, hops = is_agents ? message->target & HOPS_MASK : 0;
    int64_t count = map_count(message->properties, message->properties_length, &head);
    const char *nodes = hops > 0 ? nodes_of(message, hops) : "";
    if (count < (hops > 0) || !nodes)
        return fail(SB_INVALID, "a message of an agent says wrongly where it was");
    if (was_here(been, nodes, hops))
        return SB_DUPLICATE;
    int64_t entry = hops > 0 ? BEFORE + hops * NODE_BYTES : 0;
    int64_t users = count - (hops > 0);
    been->hops = hops + 1;
    been->compares = is_agents && message->target & ID_IS_COMPARED;
    been->onward.length = 0;
    map_copy(&been->plain, message->properties, message->properties_length, head, users, entry);
    if (been->hops > NODES_MAX)
        return SB_OK; /* it goes no further */
    map_copy(&been->onward, message->properties, message->properties_length, head, users + 1,
             entry);
    char *end = been->onward.bytes + been->onward.length;
    memcpy(end, NAME, NAME_BYTES);
    end[NAME_BYTES] = (char)(been->hops * NODE_BYTES);
    memcpy(end + BEFORE, nodes, (size_t)(hops * NODE_BYTES));
    memcpy(end + BEFORE + hops * NODE_BYTES, been->from, NODE_BYTES);
    been->onward.length += BEFORE + been->hops * NODE_BYTES;
    return SB_OK;
}

bool journey_goes_on(const journey *been, const sb_queue *queue, int64_t target)
{
    return !leads_to_agent(queue->name) ||
           (been->hops < (target >> 8 & 0xFF) && been->hops <= NODES_MAX);
}

bool journey_compares(const journey *been)
{
    return been->compares;
}

void journey_says(const journey *been, const outlet *to, sb_outgoing *message)
{
    const made *says = leads_to_agent(to->queue->name) ? &been->onward : &been->plain;
    message->properties = says->bytes;
    message->properties_length = says->length;
    message->target = to->target ? to->target | been->hops : 0;
}
