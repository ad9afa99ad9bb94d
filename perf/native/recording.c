/* What recording times costs: python -m shmbroker.perf.micro.recording.
 *
 * Short runs with and without recording alternate, so that the moods of the machine meet both. */
#define _GNU_SOURCE
#include "clock.h"
#include "connect.h"

enum { BATCH = 32 };

static const char BODY[64];

/* One message there and back in one thread: all instructions, no other processor. */

static int64_t get_and_ack(sb_queue *queue, int64_t count)
{
    for (int64_t each = 0; each < count; each++) {
        sb_message message;
        int64_t code = sb_publish(queue, BODY, sizeof BODY, 0);
        if (code < 0 || (code = sb_get(queue, &message, 0)) < 0 ||
            (code = sb_ack(queue, &message)) < 0)
            return code;
    }
    return SB_OK;
}

static int64_t receive(sb_queue *queue, int64_t count)
{
    char room[64];
    sb_message message;
    sb_room into = {.messages = &message, .buffer = room, .capacity = sizeof room};
    for (int64_t each = 0; each < count; each++) {
        int64_t code = sb_publish(queue, BODY, sizeof BODY, 0);
        if (code < 0 || (code = sb_receive(queue, &into, 0)) < 0)
            return code;
    }
    return SB_OK;
}

static int64_t get_and_ack_many(sb_queue *queue, int64_t count)
{
    static const char bodies[64 * BATCH];
    sb_message messages[BATCH];
    int64_t lengths[BATCH];
    for (int64_t each = 0; each < BATCH; each++)
        lengths[each] = 64;
    for (int64_t each = 0; each < count; each += BATCH) {
        int64_t code = sb_publish_many(queue, bodies, lengths, BATCH, 0);
        if (code < 0 || (code = sb_get_many(queue, messages, BATCH, 0)) < 0 ||
            (code = sb_ack_many(queue, messages, code)) < 0)
            return code;
    }
    return SB_OK;
}

/* Pairs of runs, in ns each: without, and with recording. */
int64_t recording_pairs(sb_connection *connection, int64_t how, int64_t one_in, int64_t pairs,
                        int64_t count, int64_t *spent_ns)
{
    static int64_t (*const run[])(sb_queue *, int64_t) = {get_and_ack, receive, get_and_ack_many};
    sb_queue *queue;
    int64_t code = sb_open_queue(connection, "here", &queue);
    for (int64_t each = 0; code == SB_OK && each < 2 * pairs; each++) {
        int64_t records = (each ^ each >> 1) & 1; /* off on, on off, ... */
        if ((code = sb_latency(queue, records, 0, 0, 0, one_in)) < 0 ||
            (code = run[how](queue, 64)) < 0)
            return code;
        int64_t before = now_ns();
        code = run[how](queue, count);
        spent_ns[(each & ~INT64_C(1)) | records] = now_ns() - before;
    }
    return code;
}

/* Ping-pong with another process. */

int64_t recording_serve(sb_connection *connection, int64_t trips)
{
    sb_queue *forth, *back;
    int64_t code = sb_open_queue(connection, "forth", &forth);
    if (code < 0 || (code = sb_open_queue(connection, "back", &back)) < 0)
        return code;
    for (int64_t trip = 0; trip < trips; trip++) {
        sb_message message;
        if ((code = sb_get(forth, &message, PATIENCE_NS)) < 0 ||
            (code = sb_publish(back, message.body, message.length, 0)) < 0 ||
            (code = sb_ack(forth, &message)) < 0)
            return code;
    }
    return SB_OK;
}

static int64_t round_trip(sb_queue *forth, sb_queue *back)
{
    sb_message message;
    int64_t code = sb_publish(forth, BODY, sizeof BODY, 0);
    if (code < 0 || (code = sb_get(back, &message, PATIENCE_NS)) < 0)
        return code;
    return sb_ack(back, &message);
}

int64_t recording_ping_pong(sb_connection *connection, int64_t one_in, int64_t pairs,
                            int64_t count, int64_t *spent_ns)
{
    sb_queue *forth, *back;
    int64_t code = sb_open_queue(connection, "forth", &forth);
    if (code < 0 || (code = sb_open_queue(connection, "back", &back)) < 0)
        return code;
    for (int64_t each = 0; each < 2 * pairs; each++) {
        int64_t records = (each ^ each >> 1) & 1;
        if ((code = sb_latency(forth, records, 0, 0, 0, one_in)) < 0 ||
            (code = sb_latency(back, records, 0, 0, 0, one_in)) < 0)
            return code;
        for (int64_t trip = 0; trip < 16; trip++)
            if ((code = round_trip(forth, back)) < 0)
                return code;
        int64_t before = now_ns();
        for (int64_t trip = 0; trip < count; trip++)
            if ((code = round_trip(forth, back)) < 0)
                return code;
        spent_ns[(each & ~INT64_C(1)) | records] = now_ns() - before;
    }
    return SB_OK;
}
