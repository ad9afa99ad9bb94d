/* Ends: to whom the frames of a journal go beside the disk.
 *
 *     writer: pwrite ──► fdatasync ──► next frame ...        the disk, one frame after the other
 *                └────► frame ──► frame ──► frame            in flight, for all other ends
 *                       ↑ done    ↑ read by an end
 *
 * A frame is offered when it is written, so that the disk and the others work at once.  It is
 * copied once, and stays until all ends are done with it and whoever reads it has freed it.  Memory
 * is bounded by what each end may have in flight.
 *
 * One mutex guards all of it; nobody sleeps or calls the disk under it.  An end's eventfd is
 * readable as long as there is something to read: both change together, under the mutex. */

#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/end.h"
#include "journal/journal.h"

typedef struct in_flight {
    struct in_flight *next;
    _Atomic int64_t holders; /* the list, and who reads it */
    int64_t number, after, epoch, seal, bytes;
    unsigned char records[];
} in_flight;

struct sb_end {
    sb_end *next;
    ends *of;
    char name[END_NAME_ROOM];
    int64_t timeout_ns, bytes_max;
    bool is_said;
    int64_t replica;      /* its number, -1: it does not count */
    int64_t done, told;   /* numbers of frames */
    int64_t frames, bytes; /* in flight */
    int64_t progress_at;  /* it was further, or got the first frame that is in flight */
    in_flight *unread;
    int event;
    int64_t code; /* SB_OK, or SB_CLOSED and why */
    char why[END_LINE_ROOM];
};

struct ends {
    pthread_mutex_t mutex;
    int64_t holders; /* the writer and the ends */
    sb_end *all;
    struct {
        bool is_used;
        sb_end *end; /* NULL: it was detached, and the writer has not let go of it yet */
    } replicas[REPLICAS_MAX];
    _Atomic int64_t news; /* of them */
    _Atomic int64_t attached; /* how many; the writer asks before it takes the mutex */
    in_flight *first, *last;
    int64_t written; /* the number of the last frame */
    _Atomic int64_t *word;
    bool is_closed;
    char why[END_LINE_ROOM];
};

/* --- frames in flight ------------------------------------------------------------------------- */

void sb_end_frame_free(void *memory)
{
    in_flight *frame = memory;
    if (frame && atomic_fetch_sub(&frame->holders, 1) == 1)
        free(frame);
}

static bool is_done_at_all(const ends *of, int64_t number)
{
    for (const sb_end *each = of->all; each; each = each->next)
        if (each->code == SB_OK && each->done < number)
            return false;
    return true;
}

/* Those that no end needs any more; they are done with in order. */
static void let_go(ends *of)
{
    while (of->first && is_done_at_all(of, of->first->number)) {
        in_flight *frame = of->first;
        of->first = frame->next;
        sb_end_frame_free(frame);
    }
    if (!of->first)
        of->last = NULL;
}

static void ring(const sb_end *end)
{
    eventfd_write(end->event, 1);
}

static void wake(ends *of)
{
    if (!of->word)
        return;
    atomic_fetch_add(of->word, 1);
    sb_system_wake((int64_t)(intptr_t)of->word, 1);
}

static void drop(sb_end *end, const char *why)
{
    if (end->code != SB_OK)
        return;
    end->code = SB_CLOSED;
    end->unread = NULL;
    atomic_fetch_add(&end->of->news, 1);
    snprintf(end->why, sizeof end->why, "end '%s' was dropped: %s", end->name, why);
    ring(end);
}

static void take(sb_end *end, in_flight *frame, int64_t now)
{
    if (end->code != SB_OK)
        return;
    if (end->replica < 0 && end->frames > 0 && end->bytes + frame->bytes > end->bytes_max) {
        drop(end, "it is behind by more than it may have in flight");
        return;
    }
    if (end->frames == 0)
        end->progress_at = now;
    end->told = frame->number;
    end->frames++;
    end->bytes += frame->bytes;
    if (!end->unread) {
        end->unread = frame;
        ring(end);
    }
}

static in_flight *copy_of(const ends *of, const sb_end_frame *frame)
{
    in_flight *made = malloc(sizeof *made + (size_t)frame->bytes);
    if (!made)
        return NULL;
    made->next = NULL;
    atomic_init(&made->holders, 1);
    made->number = frame->number;
    made->after = of->written;
    made->epoch = frame->epoch;
    made->seal = frame->seal;
    made->bytes = frame->bytes;
    memcpy(made->records, frame->records, (size_t)frame->bytes);
    return made;
}

void ends_offer(ends *to, const sb_end_frame *frame)
{
    pthread_mutex_lock(&to->mutex);
    in_flight *made = is_done_at_all(to, frame->number) ? NULL : copy_of(to, frame);
    int64_t now = to->all ? sb_system_clock() : 0;
    if (made && to->last)
        to->last->next = made;
    else if (made)
        to->first = made;
    to->last = made ? made : to->last;
    for (sb_end *each = to->all; each; each = each->next)
        if (made)
            take(each, made, now);
        else
            drop(each, "there is no memory for a frame in flight");
    to->written = frame->number;
    let_go(to);
    pthread_mutex_unlock(&to->mutex);
}

/* --- what the writer asks --------------------------------------------------------------------- */

int64_t ends_make(ends **made)
{
    ends *of = calloc(1, sizeof *of);
    if (!of)
        return fail_system("memory for the ends of a journal");
    pthread_mutex_init(&of->mutex, NULL);
    of->holders = 1;
    *made = of;
    return SB_OK;
}

/* The mutex is held, and let go of. */
static void leave(ends *of)
{
    bool is_last = --of->holders == 0;
    pthread_mutex_unlock(&of->mutex);
    if (!is_last)
        return;
    pthread_mutex_destroy(&of->mutex);
    free(of);
}

void ends_close(ends *of, const char *why)
{
    pthread_mutex_lock(&of->mutex);
    of->is_closed = true;
    of->word = NULL;
    snprintf(of->why, sizeof of->why, "%s", why);
    for (sb_end *each = of->all; each; each = each->next) {
        drop(each, why);
        each->is_said = true;
    }
    let_go(of);
    pthread_mutex_unlock(&of->mutex);
}

void ends_free(ends *of)
{
    if (!of)
        return;
    ends_close(of, "the journal was closed");
    pthread_mutex_lock(&of->mutex);
    leave(of);
}

void ends_wake(ends *of, _Atomic int64_t *word)
{
    of->word = word;
}

int64_t ends_news(ends *of)
{
    return atomic_load(&of->news);
}

void ends_replicas(ends *of, end_replica replicas[REPLICAS_MAX])
{
    pthread_mutex_lock(&of->mutex);
    for (int64_t each = 0; each < REPLICAS_MAX; each++) {
        const sb_end *end = of->replicas[each].end;
        replicas[each] = (end_replica){.is_used = of->replicas[each].is_used,
                                       .is_there = end && end->code == SB_OK,
                                       .done = end ? end->done : 0};
        if (end)
            memcpy(replicas[each].name, end->name, sizeof end->name);
    }
    pthread_mutex_unlock(&of->mutex);
}

/* The mutex is held. */
static void forget(ends *of, int64_t number)
{
    sb_end *end = of->replicas[number].end;
    if (end)
        end->replica = -1;
    of->replicas[number].is_used = false;
    of->replicas[number].end = NULL;
}

void ends_replica_forget(ends *of, int64_t number)
{
    pthread_mutex_lock(&of->mutex);
    forget(of, number);
    pthread_mutex_unlock(&of->mutex);
}

void ends_replica_drop(ends *of, int64_t number, const char *why)
{
    pthread_mutex_lock(&of->mutex);
    if (of->replicas[number].end)
        drop(of->replicas[number].end, why);
    let_go(of);
    pthread_mutex_unlock(&of->mutex);
}

bool ends_have_room(ends *of)
{
    bool have = true;
    if (atomic_load(&of->attached) == 0)
        return have;
    pthread_mutex_lock(&of->mutex);
    for (const sb_end *each = of->all; each; each = each->next)
        have &= each->code != SB_OK || each->replica < 0 || each->frames == 0 ||
                each->bytes < each->bytes_max;
    pthread_mutex_unlock(&of->mutex);
    return have;
}

int64_t ends_drop_overdue(ends *of, int64_t now)
{
    int64_t next = INT64_MAX;
    if (atomic_load(&of->attached) == 0)
        return next;
    pthread_mutex_lock(&of->mutex);
    for (sb_end *each = of->all; each; each = each->next) {
        int64_t until = each->progress_at + each->timeout_ns;
        char why[END_LINE_ROOM / 2];
        if (each->code != SB_OK || each->replica < 0 || each->frames == 0)
            continue;
        if (now < until) {
            next = until < next ? until : next;
            continue;
        }
        snprintf(why, sizeof why, "no progress for %.3g s, with %lld frames in flight",
                 (double)each->timeout_ns / 1e9, (long long)each->frames);
        drop(each, why);
    }
    let_go(of);
    pthread_mutex_unlock(&of->mutex);
    return next;
}

bool ends_dropped(ends *of, char *line)
{
    bool any = false;
    if (atomic_load(&of->attached) == 0)
        return any;
    pthread_mutex_lock(&of->mutex);
    for (sb_end *each = of->all; each && !any; each = each->next) {
        any = each->code != SB_OK && !each->is_said;
        if (any)
            snprintf(line, END_LINE_ROOM, "%s", each->why);
        each->is_said |= any;
    }
    pthread_mutex_unlock(&of->mutex);
    return any;
}

/* --- what ends do ----------------------------------------------------------------------------- */

/* All that is in flight behind this frame is for it: false if more was written than that. */
static bool go_on_after(sb_end *end, int64_t after, int64_t now)
{
    ends *of = end->of;
    end->done = end->told = after ? after : of->written;
    if (end->done == of->written)
        return true;
    if (!of->first || after < of->first->after || after > of->written)
        return false;
    for (in_flight *each = of->first; each; each = each->next)
        if (each->number > after)
            take(end, each, now);
    return true;
}

/* It counts from now on: it has a number among the replicas.  The mutex is held. */
static int64_t become_replica(sb_end *end)
{
    ends *of = end->of;
    int64_t unused = -1;
    for (int64_t each = REPLICAS_MAX - 1; each >= 0; each--) {
        const sb_end *other = of->replicas[each].end;
        if (other && other->code == SB_OK && strcmp(other->name, end->name) == 0)
            return fail(SB_IN_USE, "there is a replica '%s' already", end->name);
        if (!of->word && of->replicas[each].is_used && (!other || other->code != SB_OK))
            forget(of, each); /* without a journaler nothing is kept for it */
        unused = of->replicas[each].is_used ? unused : each;
    }
    if (unused < 0)
        return fail(SB_TOO_MANY, "a journal has at most %d replicas", REPLICAS_MAX);
    of->replicas[unused].is_used = true;
    of->replicas[unused].end = end;
    end->replica = unused;
    end->progress_at = sb_system_clock();
    atomic_fetch_add(&of->news, 1);
    wake(of);
    return SB_OK;
}

int64_t ends_attach(ends *to, const sb_end_options *options, sb_end **made)
{
    if (!options->name || options->timeout_ns <= 0 || options->bytes_max < 0 || options->after < 0)
        return fail(SB_INVALID, "an end has a name, a time-out above 0, and no less than 0 bytes");
    sb_end *end = calloc(1, sizeof *end);
    if (!end)
        return fail_system("memory for an end of a journal");
    end->of = to;
    end->timeout_ns = options->timeout_ns;
    end->bytes_max = options->bytes_max;
    end->replica = -1;
    snprintf(end->name, sizeof end->name, "%s", options->name);
    end->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int64_t code = end->event < 0 ? fail_system("an event for end '%s'", end->name) : SB_OK;
    pthread_mutex_lock(&to->mutex);
    if (code == SB_OK && to->is_closed)
        code = fail(SB_CLOSED, "no end can be attached: %s", to->why);
    char frame[SB_FRAME_TEXT_BYTES];
    sb_frame_text(options->after, frame);
    if (code == SB_OK && !go_on_after(end, options->after, sb_system_clock()))
        code = fail(SB_GONE, "what comes after frame %s is not in flight any more: read it from "
                    "the journal's segments, and attach after the last frame", frame);
    if (code == SB_OK && options->counts)
        code = become_replica(end);
    if (code == SB_OK) {
        end->next = to->all;
        to->all = end;
        to->holders++;
        atomic_fetch_add(&to->attached, 1);
        *made = end;
    }
    pthread_mutex_unlock(&to->mutex);
    if (code != SB_OK && end->event >= 0)
        close(end->event);
    if (code != SB_OK)
        free(end);
    return code;
}

int64_t sb_end_count(sb_end *end)
{
    pthread_mutex_lock(&end->of->mutex);
    int64_t written = end->of->written;
    int64_t code = end->code == SB_OK ? SB_OK : fail(end->code, "%s", end->why);
    if (code == SB_OK && end->replica < 0)
        code = become_replica(end);
    pthread_mutex_unlock(&end->of->mutex);
    return code == SB_OK ? written : code;
}

int64_t sb_end_next(sb_end *end, sb_end_frame *frame)
{
    eventfd_t rung;
    pthread_mutex_lock(&end->of->mutex);
    in_flight *next = end->unread;
    int64_t code = end->code == SB_OK ? SB_OK : fail(end->code, "%s", end->why);
    if (code == SB_OK && !next)
        code = SB_EMPTY;
    if (code == SB_OK) {
        atomic_fetch_add(&next->holders, 1);
        *frame = (sb_end_frame){next->number, next->after, next->epoch,
                                next->records, next->bytes, next, next->seal};
        end->unread = next->next;
        if (!end->unread)
            eventfd_read(end->event, &rung);
    }
    pthread_mutex_unlock(&end->of->mutex);
    return code;
}

int64_t sb_end_wait(sb_end *end, int64_t timeout_ns)
{
    struct pollfd event = {.fd = end->event, .events = POLLIN};
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    int ready = ppoll(&event, 1, &timeout, NULL);
    if (ready < 0)
        return errno == EINTR ? SB_INTERRUPTED : fail_system("waiting for a frame");
    return ready > 0 ? SB_OK : SB_EMPTY;
}

int64_t sb_end_descriptor(const sb_end *end)
{
    return end->event;
}

/* What it is done with is at the front of what is in flight, if it is not gone from there. */
static void progress(sb_end *end, int64_t number)
{
    eventfd_t rung;
    for (const in_flight *each = end->of->first; each && each->number <= number; each = each->next)
        if (each->number > end->done) {
            end->frames--;
            end->bytes -= each->bytes;
        }
    bool was_unread = end->unread;
    while (end->unread && end->unread->number <= number)
        end->unread = end->unread->next;
    if (was_unread && !end->unread)
        eventfd_read(end->event, &rung);
    end->done = number;
    end->progress_at = sb_system_clock();
    if (end->replica >= 0)
        atomic_fetch_add(&end->of->news, 1);
    let_go(end->of);
}

int64_t sb_end_done(sb_end *end, int64_t number)
{
    pthread_mutex_lock(&end->of->mutex);
    int64_t code = end->code == SB_OK ? SB_OK : fail(end->code, "%s", end->why);
    if (code == SB_OK && (number < end->done || number > end->told))
        code = fail(SB_INVALID, "end '%s' was not told of such a frame, or was done with it",
                    end->name);
    if (code == SB_OK && number > end->done) {
        progress(end, number);
        wake(end->of);
    }
    pthread_mutex_unlock(&end->of->mutex);
    return code;
}

void sb_end_state_of(sb_end *end, sb_end_state *state)
{
    pthread_mutex_lock(&end->of->mutex);
    *state = (sb_end_state){end->replica >= 0, end->done, end->told, end->frames, end->bytes};
    pthread_mutex_unlock(&end->of->mutex);
}

void sb_end_detach(sb_end *end)
{
    ends *of = end->of;
    pthread_mutex_lock(&of->mutex);
    for (sb_end **at = &of->all; *at; at = &(*at)->next)
        if (*at == end) {
            *at = end->next;
            atomic_fetch_sub(&of->attached, 1);
            break;
        }
    if (end->replica >= 0)
        of->replicas[end->replica].end = NULL;
    atomic_fetch_add(&of->news, 1);
    let_go(of);
    wake(of);
    leave(of);
    close(end->event);
    free(end);
}
