/* Records that go into a schedule here: what was scheduled at another node keeps its time.
 *
 * In such a record stands what is in the body of a message in a schedule (core/layout.py): an id,
 * which is of the schedule that it left, and when it is due, by the time of day. */

#define _GNU_SOURCE

#include "base/base.h"
#include "ring/ring.h"
#include "schedule/schedule.h"
#include "sink/sink.h"

bool outlet_is_schedule(const outlet *to)
{
    return word_load(to->queue->ring.memory, L_SETTING_SCHEDULE_OF_AT) != 0;
}

/* By our clock that does not jump. */
static int64_t due_here(const char *body)
{
    int64_t left = word_load(body, L_SCHEDULED_DUE_AT) - realtime_ns();
    int64_t due = sb_system_clock() + (left < SB_FOREVER / 2 ? left : SB_FOREVER / 2);
    return due > 0 ? due : 1;
}

int64_t scheduled_publish(outlet *to, lane *in, const sb_outgoing *message,
                          const poured_record *record)
{
    sb_outgoing rest = *message;
    sb_port *port = &in->port;
    if (message->length < L_SCHEDULED_BYTES)
        return SB_INVALID;
    int64_t code = schedule_room(to->queue, in);
    if (code == SB_OK)
        code = queue_within(to->queue, in, message);
    if (code != SB_OK)
        return code;
    const char *body = message->body;
    int64_t due = due_here(body), id;
    const int64_t extension[4] = {
        queue_expiry(to->queue, message->ttl_ns),
        group_of(message->properties, message->properties_length), due, 0};
    rest.body = body + L_SCHEDULED_BYTES;
    rest.length -= L_SCHEDULED_BYTES;
    *port_field(port, L_PORT_SEQUENCE) = record->sequence - 1;
    *port_field(port, L_PORT_PUBLISHED) = word_load(record->chunk, L_CHUNK_PUBLISHED_AT);
    int64_t chunk = schedule_chunk(to->queue, port, &rest, extension,
                                   word_load(body, L_SCHEDULED_TIME_AT), &id);
    if (chunk < 0)
        return chunk;
    code = sb_port_publish_chunk(port, chunk);
    if (code < 0)
        sb_port_unreserve(port, chunk);
    else
        schedule_note(to->queue, due);
    return code;
}
