/* Ping-pong: the loops of the initiator and of the responder, timed by the rule in plan.py. */
#include "job.h"
#include "sending.h"
#include "tally.h"
#include "waiting.h"

static inline int64_t take(const struct job *job)
{
    int64_t code, tries = 0;
    while ((code = sb_port_take(job->in, job->messages)) == SB_EMPTY)
        relax(job, &tries);
    return code;
}

static inline int64_t receive(const struct job *job)
{
    int64_t code, tries = 0;
    while ((code = sb_port_receive(job->in, job->messages, job->room, job->size)) == SB_EMPTY)
        relax(job, &tries);
    return code;
}

/* The reply, copied to room but in mode loan, and acknowledged. */
static inline int64_t await_reply(const struct job *job)
{
    int64_t code = job->mode == COMBINED ? receive(job) : take(job);
    if (code < 0)
        return code;
    const sb_message *reply = job->messages;
    if (reply->length != job->size)
        return DIFFERENT;
    int64_t stamp = stamp_of(job->mode == COMBINED ? job->room : reply->body);
    job->tally->count++;
    job->tally->total += stamp;
    if (job->mode == COMBINED)
        return SB_OK;
    if (job->mode == SINGLE)
        memcpy(job->room, reply->body, (size_t)job->size);
    else if (is_full(job, stamp) && compare(job, reply->body) != SB_OK)
        return DIFFERENT;
    return sb_port_ack(job->in, job->messages);
}

static inline int64_t round_trip(const struct job *job)
{
    int64_t code = send_number(job, job->tally->count);
    return code < 0 ? code : await_reply(job);
}

static int64_t exchange(const struct job *job, int64_t trips, int64_t *ns)
{
    int64_t before = now_ns();
    for (int64_t trip = 0; trip < trips; trip++) {
        int64_t code = round_trip(job);
        if (code < 0)
            return code;
    }
    *ns = now_ns() - before;
    return trips && job->mode != LOAN ? compare(job, job->room) : SB_OK;
}

int64_t ours_initiate(const struct job *job)
{
    int64_t unused, code = exchange(job, job->warmup, &unused);
    for (int64_t group = 0; code >= 0 && group < job->groups; group++)
        code = exchange(job, job->group_length, job->groups_ns + group);
    for (int64_t single = 0; code >= 0 && single < job->singles; single++)
        code = exchange(job, 1, job->singles_ns + single);
    return code;
}

/* Reply first, acknowledge then: if we die in between, somebody else replies once more. */
static inline int64_t reply_and_ack(const struct job *job)
{
    int64_t code = take(job);
    if (code < 0)
        return code;
    const char *request = job->messages->body;
    if (job->mode == LOAN)
        code = send_loan(job, request, stamp_of(request));
    else
        code = send_copy(job, request);
    return code < 0 ? code : sb_port_ack(job->in, job->messages);
}

static inline int64_t receive_and_reply(const struct job *job)
{
    int64_t code = receive(job);
    return code < 0 ? code : send_copy(job, job->room);
}

int64_t ours_respond(const struct job *job)
{
    for (int64_t trip = 0; trip < job->wanted; trip++) {
        int64_t code = job->mode == COMBINED ? receive_and_reply(job) : reply_and_ack(job);
        if (code < 0)
            return code;
    }
    return SB_OK;
}
