/* Participants that are to leave: slow consumers, and those that an operator disconnects.
 *
 * The entry of one says so, for the one who joined at that time, and what it holds goes to others.
 * It finds out when it deals with one of those, or waits, and leaves with its next call: who finds
 * out is in a lane, and leaving waits for those.  Publishing looks at no entry, so that it costs
 * nothing: who only publishes, and never waits for room or for a confirm, does not find out. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "catalog/catalog.h"
#include "repair/repair.h"
#include "ring/ring.h"
#include "vhost/vhost.h"

/* Of what may be in hand, from head to tail: how many were taken back.  owner 0: of all but us. */
static int64_t take_back(sb_queue *queue, sb_port *port, int64_t owner, int64_t head, int64_t tail)
{
    int64_t count = 0;
    for (int64_t position = head; position < tail; position++) {
        int64_t word = sb_port_word_of(port, position);
        int64_t whose = (word >> L_OWNER_SHIFT) & L_OWNER_MASK;
        if (word && (owner ? whose == owner : whose != queue->connection->id) &&
            ((word >> L_STATE_SHIFT) & L_STATE_MASK) == L_LEASED)
            count += sb_port_revoke(port, position, word);
    }
    return count;
}

static int64_t take_all_back(sb_queue *queue, sb_port *port, int64_t owner)
{
    int64_t tail = sb_port_true_tail(port);
    int64_t head = word_load(queue->ring.memory, L_RING_HEAD_AT) & L_POSITION_MASK;
    if (tail < 0 || tail - head > queue->slots)
        return 0;
    return take_back(queue, port, owner, head, tail);
}

/* All that others have in hand: they are out of reach, and their ids are no sign of their end. */
int64_t sb_take_back(sb_queue *queue)
{
    int64_t code;
    sb_port port;
    if (!queue_look(queue, &code))
        return code;
    code = sb_port_to_look(queue, &port);
    int64_t count = code == SB_OK ? take_all_back(queue, &port, 0) : 0;
    queue_looked(queue);
    return code == SB_OK ? count : code;
}

void expel_slow(sb_queue *queue, sb_port *port, int64_t id, int64_t head, int64_t tail)
{
    char *entry = participant_entry(queue->connection, id);
    word_store(entry, L_PARTICIPANT_EXPELLED_AT, word_load(entry, L_PARTICIPANT_JOINED_AT));
    int64_t revoked = take_back(queue, port, id, head, tail);
    revoked += sb_port_groups_free(port, -1, id); /* if it hangs, it never lets go of them */
    expiry_unknown(queue);
    if (revoked)
        sb_port_wake_all(port);
}

void expelled_find_out(sb_connection *connection)
{
    const char *entry = participant_entry(connection, connection->id);
    int64_t meant = word_load(entry, L_PARTICIPANT_EXPELLED_AT), open = 0;
    int64_t joined = word_load(entry, L_PARTICIPANT_JOINED_AT);
    if (connection->id && meant && (meant == joined || meant == -joined))
        atomic_compare_exchange_strong(&connection->closed, &open,
                                       meant == joined ? SB_SLOW : SB_DISCONNECTED);
}

int64_t sb_system_revoked(int64_t port)
{
    sb_queue *queue = (sb_queue *)(intptr_t)word_load((void *)(intptr_t)port, L_PORT_QUEUE_HANDLE);
    if (queue)
        expelled_find_out(queue->connection);
    return SB_REVOKED;
}

/* --- by an operator --------------------------------------------------------------------------- */

static int64_t take_from(sb_connection *connection, int64_t reference, int64_t id)
{
    sb_queue *queue;
    sb_port port;
    if (queue_find(connection, reference, &queue) != SB_OK)
        return 0; /* deleted since */
    int64_t count = 0;
    if (sb_port_to_look(queue, &port) == SB_OK) {
        count = take_all_back(queue, &port, id);
        sb_port_groups_free(&port, -1, id);
        expiry_unknown(queue);
        sb_port_wake_all(&port); /* who waits there looks whether it is to leave */
    }
    queue_looked(queue);
    return count;
}

static int64_t take_from_all(sb_connection *connection, const char *entry, int64_t id)
{
    int64_t count = 0, row = 0, used = participant_list_length(entry);
    if (!participant_list_is_full(entry)) {
        for (int64_t index = 0; index < used; index++) {
            int64_t word = word_load(entry, L_PARTICIPANT_LIST_AT + 8 * index);
            count += word ? take_from(connection, word & ~L_USES, id) : 0;
        }
        return count;
    }
    while ((row = sb_row_next(connection->catalog.memory, L_QUEUES, row)) >= 0) {
        int64_t reference = sb_row_reference(connection->catalog.memory, L_QUEUES, row++);
        count += reference < 0 ? 0 : take_from(connection, reference, id);
    }
    return count;
}

int64_t sb_participant_disconnect(sb_connection *connection, int64_t id, int64_t joined)
{
    int64_t code = change_code(connection);
    if (code != SB_OK)
        return code;
    if (id < 1 || id >= participants_high(connection))
        return SB_NOT_FOUND;
    char *entry = participant_entry(connection, id);
    if (word_load(entry, L_PARTICIPANT_STATE_AT) != L_PARTICIPANT_LIVE || joined == 0 ||
        word_load(entry, L_PARTICIPANT_JOINED_AT) != joined)
        return SB_NOT_FOUND;
    if (word_load(entry, L_PARTICIPANT_OWNS_AT) & L_REPAIRS)
        return fail(SB_INVALID, "participant %lld looks after the vhost: stop its process",
                    (long long)id);
    if (word_load(entry, L_PARTICIPANT_EXPELLED_AT) != -joined)
        log_note(connection, "participant %lld (%.*s, pid %lld) was disconnected by an operator",
                 (long long)id, (int)L_PARTICIPANT_NAME_BYTES_MAX, entry + L_PARTICIPANT_NAME_AT,
                 (long long)word_load(entry, L_PARTICIPANT_PID_AT));
    word_store(entry, L_PARTICIPANT_EXPELLED_AT, -joined);
    return take_from_all(connection, entry, id);
}
