/* Streams: the loops of senders, of receivers that take, and of subscribers that only look. */
#include "job.h"
#include "sending.h"
#include "tally.h"
#include "waiting.h"

enum { STOPPED = 1, RELEASE_EVERY = 32 };

static int64_t send_batch(const struct job *job, int64_t first)
{
    int64_t tries = 0, sent = 0;
    while (sent < job->batch) {
        const char *from = job->source + (first % job->period + sent) * job->size;
        int64_t code = sb_port_publish_many(job->out, from, job->lengths, job->batch - sent);
        if (code == SB_FULL)
            relax(job, &tries);
        else if (code < 0)
            return code;
        else
            sent += code;
    }
    return sent;
}

int64_t ours_send(const struct job *job)
{
    int64_t step = job->mode == BATCH ? job->batch : 1, code = SB_OK;
    for (int64_t number = 0; code >= 0 && number < job->wanted; number += step)
        code = job->mode == BATCH ? send_batch(job, number) : send_number(job, number);
    return code < 0 ? code : SB_OK;
}

/* How each kind of receiver looks once: OK, STOPPED, EMPTY, or a code that ends the run. */

static int64_t look_single(const struct job *job)
{
    sb_message *message = job->messages;
    int64_t code = sb_port_take(job->in, message);
    if (code != SB_OK)
        return code;
    if (message->length != job->size)
        return sb_port_ack(job->in, message) == SB_OK ? STOPPED : SB_REVOKED;
    memcpy(job->room, message->body, (size_t)job->size);
    code = sb_port_ack(job->in, message);
    return code == SB_OK ? keep(job, job->room) : code;
}

static int64_t look_combined(const struct job *job)
{
    int64_t length = sb_port_receive(job->in, job->messages, job->room, job->size);
    if (length < 0)
        return length;
    return length == job->size ? keep(job, job->room) : STOPPED;
}

static int64_t look_loan(const struct job *job)
{
    sb_message *message = job->messages;
    int64_t code = sb_port_take(job->in, message);
    if (code != SB_OK)
        return code;
    int64_t kept = message->length == job->size ? keep(job, message->body) : STOPPED;
    code = sb_port_ack(job->in, message);
    return code == SB_OK ? kept : code;
}

static int64_t look_batch(const struct job *job)
{
    int64_t taken = sb_port_take_many(job->in, job->messages, job->batch), result = SB_OK;
    for (int64_t i = 0; i < taken && result == SB_OK; i++) {
        const sb_message *message = job->messages + i;
        char *copy = job->room + i * job->size;
        if (message->length != job->size) {
            result = STOPPED;
        } else {
            memcpy(copy, message->body, (size_t)job->size);
            result = keep(job, copy);
        }
    }
    if (taken < 0)
        return taken;
    return sb_port_ack_many(job->in, job->messages, taken) == taken ? result : SB_REVOKED;
}

static int64_t release(const struct job *job)
{
    job->tally->unreleased = 0;
    int64_t position = sb_cursor_release(job->cursor);
    return position < 0 ? position : SB_OK;
}

static int64_t look_subscribed(const struct job *job)
{
    sb_message *message = job->messages;
    int64_t code = sb_cursor_next(job->cursor, message);
    if (code == SB_EMPTY && job->tally->unreleased && (code = release(job)) == SB_OK)
        return SB_EMPTY;
    if (code != SB_OK)
        return code;
    if (message->length != job->size)
        return DIFFERENT;
    const char *body = message->body;
    if (job->mode != LOAN)
        body = memcpy(job->room, body, (size_t)job->size);
    code = keep(job, body);
    if (code == SB_OK && ++job->tally->unreleased == RELEASE_EVERY)
        code = release(job);
    return code;
}

static inline int64_t look(const struct job *job)
{
    if (job->subscribed)
        return look_subscribed(job);
    switch (job->mode) {
    case SINGLE: return look_single(job);
    case COMBINED: return look_combined(job);
    case BATCH: return look_batch(job);
    default: return look_loan(job);
    }
}

/* Before the first message is sent, so that none is missed. */
int64_t ours_subscribe(const struct job *job)
{
    return sb_cursor_open(job->cursor, job->in, SB_GATE_FLEETING, 0);
}

/* The stream is over for us when we have all, or at a stop; its end is when the last came. */
int64_t ours_receive(const struct job *job)
{
    struct tally *tally = job->tally;
    int64_t code = SB_OK, tries = 0, timed = 0;
    tally->finished_ns = now_ns();
    while (code != STOPPED && tally->count != job->wanted) {
        code = look(job);
        if (code == SB_OK) {
            tries = 0;
        } else if (code == SB_EMPTY) {
            if (timed != tally->count)
                tally->finished_ns = now_ns();
            timed = tally->count;
            relax(job, &tries);
        } else if (code < 0) {
            break;
        }
    }
    if (timed != tally->count)
        tally->finished_ns = now_ns();
    return code < 0 && code != SB_EMPTY ? code : SB_OK;
}
