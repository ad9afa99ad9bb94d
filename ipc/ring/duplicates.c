/* Messages of which one counts: those with the same id, and those that a named producer has given
 * the same number.  core/once.py says how it is decided; here is what is to be decided on.
 *
 * An id is a property (JMSMessageID), for people and programs to see, and a hash in the chunk, by
 * which the ring remembers it: SipHash-2-4 with a key that is the queue's own, so that whoever may
 * choose ids cannot make two that are taken for one another.
 *
 * The memory of ids has no memory behind it before the first one is published: a queue without ids
 * costs nothing. */

#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "message/message.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

#define MESSAGE_ID "JMSMessageID"

#define ID_BYTES_MAX 255

#define FEW_BYTES 1024

/* --- what is asked for ------------------------------------------------------------------------ */

typedef struct once {
    sb_outgoing outgoing; /* with the id among the properties */
    int64_t identity[2];  /* the hash of the id; two zeros if there is none, or it is not checked */
    int64_t origin;       /* producer and number, 0 none */
    bool is_checked;
    unsigned char few[FEW_BYTES], *properties;
} once;

/* --- the hash --------------------------------------------------------------------------------- */

static uint64_t turned(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void rounds(uint64_t *v, int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = turned(v[1], 13) ^ v[0];
        v[3] = turned(v[3], 16) ^ v[2];
        v[0] = turned(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = turned(v[1], 17) ^ v[2];
        v[3] = turned(v[3], 21) ^ v[0];
        v[2] = turned(v[2], 32);
    }
}

void siphash_128(const int64_t key[2], const void *bytes, int64_t length, uint64_t hash[2])
{
    const unsigned char *at = bytes;
    const uint64_t low = (uint64_t)key[0], high = (uint64_t)key[1];
    uint64_t v[4] = {low ^ UINT64_C(0x736f6d6570736575), high ^ UINT64_C(0x646f72616e646f6d) ^ 0xEE,
                     low ^ UINT64_C(0x6c7967656e657261), high ^ UINT64_C(0x7465646279746573)};
    for (int64_t left = length; left >= 0; left -= 8, at += 8) {
        uint64_t word = left < 8 ? (uint64_t)length << 56 : 0;
        for (int64_t each = 0; each < left && each < 8; each++)
            word |= (uint64_t)at[each] << 8 * each;
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xEE;
    rounds(v, 4);
    hash[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xDD;
    rounds(v, 4);
    hash[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

static int64_t ids_of(const sb_queue *queue)
{
    return setting(queue, L_RING_IDS_AT);
}

static int64_t commit_ids(sb_queue *queue)
{
    void *ring = queue->ring.memory;
    if (word_load(ring, L_RING_IDS_MADE_AT) == 1)
        return SB_OK;
    int64_t start = sb_ring_bytes(queue->slots);
    int64_t bytes = sb_ring_bytes_with(queue->slots, ids_of(queue)) - start;
    int64_t code = ring_allocate(queue, start, bytes, "message ids");
    if (code != SB_OK)
        return code;
    /* and whoever finds an id in the ring finds this too */
    word_store(ring, L_RING_IDS_MADE_AT, 1);
    return SB_OK;
}

/* The table has series of transactions as well, and their numbers. */
static bool is_named_producer(const sb_queue *queue, int64_t producer)
{
    return producer > 0 && producer < L_PRODUCERS &&
           setting(queue, L_RING_PRODUCERS_AT + producer * L_PRODUCER_BYTES +
                              L_PRODUCER_IDENTITY_AT) > 0;
}

static int64_t id_check(const sb_queue *queue, const sb_outgoing *message)
{
    int64_t length = llabs(message->id_length);
    if (length > ID_BYTES_MAX)
        return fail(SB_INVALID, "the id of a message has 1 to %d bytes, not %lld", ID_BYTES_MAX,
                    (long long)length);
    if (length && message->producer)
        return fail(SB_INVALID,
                    "a message of a named producer is known by its number: it has no id");
    if (message->producer && !is_named_producer(queue, message->producer))
        return fail(SB_INVALID, "queue '%s' has no producer %lld: sb_producer_open says the number "
                    "of one", queue->name, (long long)message->producer);
    if (message->producer && (message->sequence < 1 || message->sequence > L_SEQUENCE_MASK))
        return fail(SB_INVALID, "a producer's messages have numbers from 1 to %lld, not %lld",
                    (long long)L_SEQUENCE_MASK, (long long)message->sequence);
    return SB_OK;
}

static int64_t add_id(once *made, const sb_outgoing *message)
{
    int64_t length = llabs(message->id_length);
    const text_pair pair = {MESSAGE_ID, message->id, length, message->id_length < 0};
    size_t room = 3 + (size_t)message->properties_length + PAIR_ROOM(MESSAGE_ID, ID_BYTES_MAX);
    if (room > sizeof made->few && !(made->properties = malloc(room)))
        return fail_system("memory for properties");
    int64_t code = properties_with(made->properties, message->properties,
                                   message->properties_length, &pair, 1);
    made->outgoing.properties = made->properties;
    made->outgoing.properties_length = code;
    return code < 0 ? code : SB_OK;
}

static void half(const uint64_t hash[2], int64_t identity[2])
{
    identity[0] = (int64_t)(hash[0] >> 1);
    identity[1] = (int64_t)(hash[1] >> 1) | (hash[0] == 0);
}

void id_hash(const int64_t key[2], const void *id, int64_t length, int64_t identity[2])
{
    uint64_t hash[2];
    siphash_128(key, id, length, hash);
    half(hash, identity);
}

int64_t producer_hash(const int64_t key[2], const void *name, int64_t length)
{
    uint64_t hash[2];
    siphash_128(key, name, length, hash);
    return (int64_t)(hash[0] >> 2) | 1;
}

static void identify(sb_queue *queue, const sb_outgoing *message, int64_t identity[2])
{
    uint64_t hash[2];
    int64_t length = llabs(message->id_length);
    siphash_128(queue->key, message->id, length, hash);
    if (message->target >> 16 != OF_AGENT) /* at a node it may go to several places */
        hash[1] ^= (uint64_t)message->target << 1;
    half(hash, identity);
    if (length && queue->connection->duties->was_published(queue, message->id, length))
        identity[0] = identity[1] = L_ID_ELSEWHERE;
}

int64_t no_numbers(const sb_queue *queue)
{
    return fail(SB_INVALID,
                "queue '%s' keeps the last values: it has no named producers, a value that "
                "is published again replaces itself",
                queue->name);
}

static int64_t begin(sb_queue *queue, const sb_outgoing *message, once *made)
{
    made->outgoing = *message;
    made->properties = made->few;
    made->identity[0] = made->identity[1] = made->origin = 0;
    int64_t code = message->producer && queue->last_value ? no_numbers(queue)
                                                           : id_check(queue, message);
    made->is_checked = message->producer || ids_of(queue) > 0;
    if (code == SB_OK && message->producer)
        made->origin = message->producer << L_ORIGIN_PRODUCER_SHIFT | message->sequence;
    else if (code == SB_OK && made->is_checked)
        identify(queue, message, made->identity);
    if (code == SB_OK && message->id_length)
        code = add_id(made, message);
    if (code == SB_OK && !message->producer && made->is_checked)
        code = commit_ids(queue);
    return code;
}

static void end(once *made)
{
    if (made->properties != made->few)
        free(made->properties);
}

static int64_t refused(sb_queue *queue)
{
    atomic_fetch_add((_Atomic int64_t *)((char *)queue->ring.memory + L_COUNTER_DUPLICATES_AT), 1);
    return SB_DUPLICATE;
}

/* Whether it is known already.  Not needed for the right answer, which tail gives, but cheaper; and
 * a full queue is no reason to wait with what is in it. */
static bool is_known(sb_port *port, const int64_t identity[2], int64_t origin)
{
    if (origin)
        return sb_port_producer_last(port, origin >> L_ORIGIN_PRODUCER_SHIFT) >=
               (origin & L_SEQUENCE_MASK);
    if (identity[0] == L_ID_ELSEWHERE && identity[1] == L_ID_ELSEWHERE)
        return true;
    return (identity[0] | identity[1]) && sb_port_id_find(port, identity[0], identity[1]) > 0;
}

/* --- publishing ------------------------------------------------------------------------------- */

static int64_t reserve(sb_queue *queue, sb_port *port, const once *made, const int64_t *extension)
{
    (void)queue;
    return made->is_checked ? sb_port_loan_once(port, &made->outgoing, extension, made->identity)
                            : sb_port_loan_with(port, &made->outgoing, extension);
}

static int64_t publish_checked(sb_queue *queue, sb_port *port, const once *made,
                               const int64_t *extension)
{
    int64_t chunk = reserve(queue, port, made, extension);
    if (chunk < 0)
        return chunk;
    if (made->outgoing.length)
        memcpy(sb_port_loan_body(port, chunk), made->outgoing.body, (size_t)made->outgoing.length);
    int64_t code = sb_port_publish_chunk_checked(port, chunk, made->origin);
    if (code < 0 && code != SB_DUPLICATE)
        sb_port_unreserve(port, chunk);
    return code;
}

static int64_t publish(sb_queue *queue, sb_port *port, const once *made, const int64_t *extension)
{
    if (!made->is_checked)
        return sb_port_publish_with(port, &made->outgoing, extension);
    return is_known(port, made->identity, made->origin)
               ? refused(queue) : publish_checked(queue, port, made, extension);
}

int64_t target_with_id(int64_t target)
{
    return target >> 16 == OF_AGENT ? target | ID_IS_COMPARED : target;
}

int64_t once_publish_poured(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                            const int64_t *extension)
{
    once made = {.outgoing = *message, .is_checked = true};
    sb_outgoing named = *message;
    const char *id = NULL;
    named.id_length = property_id(message->properties, message->properties_length, MESSAGE_ID, &id);
    named.id = id;
    if (named.id_length == 0 || ids_of(queue) == 0)
        return sb_port_publish_with(port, message, extension);
    if (queue->pages || setting(queue, L_SETTING_INBOX_OF_AT))
        return fail(SB_INVALID, "queue '%s' pages, and what is in its pages is not compared: "
                    "publish without an id", queue->name);
    identify(queue, &named, made.identity);
    made.origin = *port_field(port, L_PORT_PRODUCER) << L_ORIGIN_PRODUCER_SHIFT |
                  (*port_field(port, L_PORT_SEQUENCE) + 1);
    int64_t code = commit_ids(queue);
    if (code != SB_OK)
        return code;
    return is_known(port, made.identity, 0) ? refused(queue)
                                            : publish_checked(queue, port, &made, extension);
}

int64_t once_publish(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                     const int64_t *extension)
{
    once made;
    int64_t code = begin(queue, message, &made);
    if (code == SB_OK)
        code = publish(queue, port, &made, extension);
    end(&made);
    return code;
}

int64_t once_refused(sb_queue *queue, sb_port *port, const sb_outgoing *message)
{
    once made;
    if ((message->id_length | message->producer) == 0)
        return SB_FULL;
    int64_t code = begin(queue, message, &made);
    end(&made);
    if (code != SB_OK)
        return code;
    return made.is_checked && is_known(port, made.identity, made.origin) ? refused(queue) : SB_FULL;
}

int64_t once_reserve(sb_queue *queue, sb_port *port, const sb_outgoing *message,
                     const int64_t *extension)
{
    once made;
    if (message->producer)
        return fail(SB_INVALID, "a named producer's messages are published one at a time, neither "
                    "filled in place nor in a transaction");
    int64_t code = begin(queue, message, &made);
    if (code == SB_OK)
        code = reserve(queue, port, &made, extension);
    end(&made);
    return code;
}

bool is_once(const void *chunk)
{
    return word_load(chunk, L_CHUNK_MARK_AT) & L_CHUNK_ONCE << L_MARK_FLAGS_SHIFT;
}

static bool loan_is_known(sb_port *port, const void *memory)
{
    int64_t mark = word_load(memory, L_CHUNK_MARK_AT), at = L_CHUNK_HEADER_BYTES;
    if (mark & L_CHUNK_EXTENDED << L_MARK_FLAGS_SHIFT)
        at += L_CHUNK_EXTENSION_BYTES;
    const int64_t identity[2] = {word_load(memory, at), word_load(memory, at + 8)};
    return is_known(port, identity, 0);
}

int64_t once_publish_loan(sb_queue *queue, sb_port *port, int64_t chunk, const void *memory)
{
    if (!loan_is_known(port, memory))
        return sb_port_publish_chunk_checked(port, chunk, 0);
    sb_port_unreserve(port, chunk);
    return refused(queue);
}

int64_t once_refused_loan(sb_queue *queue, sb_port *port, int64_t chunk, const void *memory)
{
    if (!is_once(memory) || !loan_is_known(port, memory))
        return SB_FULL;
    sb_port_unreserve(port, chunk);
    return refused(queue);
}

int64_t sb_producer_sequence(sb_queue *queue, int64_t producer)
{
    sb_port port;
    int64_t code;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    if (code == SB_OK)
        code = sb_port_producer_last(&port, producer);
    queue_looked(queue);
    return code;
}

/* --- taking ----------------------------------------------------------------------------------- */

const void *sb_message_id(const sb_message *message, int64_t *length)
{
    int64_t all;
    const char *id = NULL;
    const void *properties = sb_message_properties(message, &all);
    *length = property_id(properties, all, MESSAGE_ID, &id);
    return *length ? id : NULL;
}

bool once_withdraw(sb_port *port, sb_message *message)
{
    if (!sb_port_is_duplicate(port, message))
        return false;
    sb_port_withdraw(port, message);
    sb_port_tell_producers(port);
    message->word = 0;
    return true;
}
