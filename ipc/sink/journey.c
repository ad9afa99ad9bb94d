/* Where messages have been that come from a message transfer agent, so that rings of brokers end.
 *
 * They say it only on their way, in a queue of an agent and on the wire: by the word for the
 * target,
 *
 *     "mta" << 16 | it comes back << 15 | it is mandatory << 14 | or immediate << 13 |
 *     who published it is told << 12 | over how many agents it may go << 8 |
 *     an id was given << 7 | over how many it has gone
 *
 * and, if it has gone over any, by the last of its properties: "$mta", the ids of the nodes where
 * it was published, in their order.  If it has gone over none, and its publisher is to be told when
 * it is returned, that is the identity of the publisher's queue.  Whoever takes it here sees none
 * of it.
 *
 * What comes back has a node where it was published, and nobody has it there: FORWARD_ONLY.  The
 * other broker says so to whoever subscribes to it there, and that node takes it. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "message/message.h"
#include "ring/ring.h"
#include "sink/sink.h"

#define HOPS_MASK 0x7F
#define HOPS_MAX_MASK 0xF
#define NODES_MAX 15 /* more than that is more than one byte can count */
#define NAME "\xA4" JOURNEY "\xC4" /* text of 4 bytes; bytes, of a length in one byte */
#define NAME_BYTES 6
#define BEFORE (NAME_BYTES + 1)
#define ENTRY_MAX (BEFORE + NODES_MAX * NODE_BYTES)
#define MAP_SHORT 15
#define MAP_LONG 0xDE
#define MAP_LONGER 0xDF
#define HEAD_LONG 3

/* Properties as they are published here, or go on. */
typedef struct made {
    int64_t length;
    char bytes[L_PROPERTIES_BYTES_MAX + ENTRY_MAX + HEAD_LONG];
} made;

struct journey {
    char here[NODE_BYTES], from[NODE_BYTES];
    int64_t hops; /* up to here */
    int64_t wishes;  /* WISHES: of whoever has published them */
    bool compares;   /* their ids, as where they were published */
    bool comes_back; /* to the node from which they come */
    made plain, onward;
};

int64_t sb_target_of_agent(int64_t hops_max, int64_t comes_back)
{
    return OF_AGENT << 16 | (comes_back ? COMES_BACK : 0) | (hops_max & HOPS_MAX_MASK) << 8;
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
    int64_t count = 0;
    *head = length > 0;
    if ((first & 0xF0) == 0x80)
        return first & 0x0F;
    *head += first == MAP_LONG ? 2 : first == MAP_LONGER ? 4 : length;
    if (length < *head)
        return SB_INVALID;
    for (int64_t each = 1; each < *head; each++)
        count = count << 8 | (unsigned char)bytes[each];
    return count;
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

/* The last property, of so many places, behind the bytes that say how many there are. */
static const char *places_of(const sb_outgoing *message, int64_t head, int64_t places)
{
    int64_t bytes = BEFORE + places * NODE_BYTES;
    const char *entry = (const char *)message->properties + message->properties_length - bytes;
    if (places > NODES_MAX || message->properties_length < head + bytes ||
        memcmp(entry, NAME, NAME_BYTES) != 0 ||
        (unsigned char)entry[NAME_BYTES] != places * NODE_BYTES)
        return NULL;
    return entry + BEFORE;
}

int64_t journey_publisher(sb_outgoing *message, char *plain, int64_t identity[2])
{
    int64_t head, count = map_count(message->properties, message->properties_length, &head);
    const char *place = message->target >> 16 == OF_AGENT && message->target & HAS_PUBLISHER
                            ? places_of(message, head, 1) : NULL;
    made users;
    if (!place || count < 1)
        return SB_NOT_FOUND;
    memcpy(identity, place, NODE_BYTES);
    map_copy(&users, message->properties, message->properties_length, head, count - 1,
             BEFORE + NODE_BYTES);
    memcpy(plain, users.bytes, (size_t)users.length);
    message->properties = plain;
    message->properties_length = users.length;
    message->target = 0;
    return SB_OK;
}

static bool was_here(const journey *been, const char *nodes, int64_t hops, bool comes_back)
{
    if (comes_back && hops == 1 && memcmp(nodes, been->here, NODE_BYTES) == 0)
        return false; /* it was published here, and nobody here has it */
    for (int64_t each = 0; each < hops; each++)
        if (memcmp(nodes + each * NODE_BYTES, been->here, NODE_BYTES) == 0)
            return true;
    return memcmp(been->from, been->here, NODE_BYTES) == 0;
}

int64_t journey_read(sb_sink *sink, const sb_outgoing *message)
{
    journey *been = sink->journey;
    bool is_agents = message->target >> 16 == OF_AGENT;
    int64_t target = is_agents ? message->target : 0;
    int64_t head, hops = target & HOPS_MASK;
    int64_t places = hops > 0 ? hops : target & HAS_PUBLISHER ? 1 : 0;
    int64_t count = map_count(message->properties, message->properties_length, &head);
    const char *nodes = places > 0 ? places_of(message, head, places) : "";
    if (count < (places > 0) || !nodes)
        return fail(SB_INVALID, "a message of an agent says wrongly where it was");
    if (was_here(been, nodes, hops, target & COMES_BACK))
        return SB_DUPLICATE;
    int64_t entry = places > 0 ? BEFORE + places * NODE_BYTES : 0;
    int64_t users = count - (places > 0);
    been->hops = hops + 1;
    been->wishes = target & WISHES;
    been->compares = target & ID_IS_COMPARED;
    been->comes_back = target & COMES_BACK && hops == 0;
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
           (been->hops < (target >> 8 & HOPS_MAX_MASK) && been->hops <= NODES_MAX);
}

int64_t journey_wishes(const journey *been)
{
    return been->wishes;
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
    message->target = to->target ? (to->target & ~COMES_BACK) | been->hops : 0;
    if (has_subscribed(to->queue->name))
        message->target |= been->comes_back ? COMES_BACK : 0;
    else if (to->target)
        message->target |= been->wishes;
}
