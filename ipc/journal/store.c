/* The files that become segments: a thread writes them over, or recycles old ones, and has the next
 * one ready before it is needed.
 *
 *   spare, written over ──► header ──► fdatasync ──► name ──► fsync of the folder ──► ready
 *   segment that no list has ──► name away ──► fsync of the folder ──► spare, reserve, or removed
 *
 * The reserve is room for segments that is set aside and not used while there is any other: by a
 * writer the last of it only if that makes another segment dead, and by whoever begins after the
 * writer has died.
 *
 * It also looks through segments of before, of which it is not known what they have. */

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/spare.h"
#include "journal/store.h"

#define NICE 10
#define SOON_NS INT64_C(100000000) /* programs confirm by then, and no segment is full yet */

/* --- a list of serials ------------------------------------------------------------------------ */

static bool serials_push(serials *to, int64_t serial)
{
    if (!ROOM_FOR(to->all, to->room, to->count + 1))
        return false;
    to->all[to->count++] = serial;
    return true;
}

int64_t serials_pop(serials *from)
{
    int64_t first = from->all[0];
    memmove(from->all, from->all + 1, (size_t)--from->count * sizeof first);
    return first;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The mutex is let go while the disk works: nobody else touches the spares. */
static void make_ready(store *of)
{
    written ready = {.file = -1};
    spare from;
    int64_t code = SB_OK, serial = of->serial;
    reserve_use opens = of->opens_reserve;
    pthread_mutex_unlock(&of->mutex);
    if (of->spare_count > 0)
        from = of->spares[--of->spare_count];
    else {
        code = spare_make(of, of->segment_bytes, &from);
        of->counts.made += code == SB_OK;
        of->is_tight = code == SB_DISK_FULL;
        if (code == SB_DISK_FULL)
            code = spare_find(of, opens, &from);
    }
    if (code == SB_OK && serial == 0)
        of->spares[of->spare_count++] = from;
    else if (code == SB_OK) {
        code = spare_become(of, &from, serial, &ready);
        if (code == SB_STALE)
            of->spares[of->spare_count++] = from;
        else if (code != SB_OK)
            spare_drop(of, &from);
    }
    pthread_mutex_lock(&of->mutex);
    if (code == SB_OK && serial == 0) {
        of->ready_code = SB_OK;
        return;
    }
    of->serial += serial > 0 && (code == SB_OK || code == SB_JOURNAL_FAILED || of->skips_serial);
    of->skips_serial = false;
    of->ready = ready;
    of->ready_code = code;
    snprintf(of->text, sizeof of->text, "%s", sb_detail(code));
}

static void note(store *of)
{
    const listed reached = of->reached;
    of->reached = (listed){0};
    pthread_mutex_unlock(&of->mutex);
    reached_write(&of->in, &reached);
    pthread_mutex_lock(&of->mutex);
}

static void give_way(store *of)
{
    pthread_mutex_unlock(&of->mutex);
    while (of->spare_count > 0)
        spare_drop(of, &of->spares[--of->spare_count]);
    bool any = of->reserve_count > 0;
    while (of->reserve_count > 0)
        spare_drop(of, &of->reserve[--of->reserve_count]);
    pthread_mutex_lock(&of->mutex);
    of->owes_reserve |= any;
    of->gives_way = false;
}

static void go_on(store *of)
{
    of->holds_back = false;
    of->asks_reserve = of->keeps_reserve;
    pthread_cond_signal(&of->asked);
}

/* Until somebody asks, or until then: whether the time is up.  0: it never is. */
static bool rest(store *of, int64_t until)
{
    struct timespec at = {until / 1000000000, until % 1000000000};
    of->busy = false;
    pthread_cond_broadcast(&of->done);
    if (until)
        return pthread_cond_timedwait(&of->asked, &of->mutex, &at) == ETIMEDOUT;
    pthread_cond_wait(&of->asked, &of->mutex);
    return false;
}

static void *run(void *argument)
{
    store *of = argument;
    /* what is made ready is for later; a confirm, just after a failover above all, is for now.
     * 0: this thread only, as Linux counts it */
    setpriority(PRIO_PROCESS, 0, NICE);
    pthread_mutex_lock(&of->mutex);
    while (!atomic_load(&of->stop)) {
        of->busy = true;
        if (of->holds_back) {
            if (rest(of, of->held_until))
                go_on(of);
        } else if (of->reached.serial)
            note(of);
        else if (of->gives_way)
            give_way(of);
        else if (of->claims) {
            of->claims = false;
            pthread_mutex_unlock(&of->mutex);
            spares_claim(of);
            pthread_mutex_lock(&of->mutex);
        } else if (of->ready_code == SB_EMPTY && (of->spare_count > 0 || of->dead.count == 0))
            make_ready(of);
        else if (of->dead.count > 0) {
            int64_t serial = serials_pop(&of->dead);
            bool is_awaited = of->ready_code != SB_OK && of->spare_count == 0;
            pthread_mutex_unlock(&of->mutex);
            if (serial < 0)
                segment_set_aside(of, -serial);
            else
                segment_recycle(of, serial, is_awaited);
            pthread_mutex_lock(&of->mutex);
        } else if (of->clears) {
            of->clears = false;
            pthread_mutex_unlock(&of->mutex);
            folder_clear(&of->in);
            pthread_mutex_lock(&of->mutex);
        } else if (of->asks_reserve && of->serial > 0 && of->ready_code == SB_OK) {
            of->asks_reserve = false;
            pthread_mutex_unlock(&of->mutex);
            while (of->reserve_count > of->reserve_wanted)
                spare_drop(of, &of->reserve[--of->reserve_count]);
            while (!reserve_is_whole(of) && reserve_make(of))
                ;
            pthread_mutex_lock(&of->mutex);
        } else if (of->unknown.count > 0)
            store_learn_one(of);
        else
            rest(of, 0);
        pthread_cond_broadcast(&of->done);
    }
    of->busy = false;
    pthread_mutex_unlock(&of->mutex);
    return NULL;
}

/* --- what the writer asks for ----------------------------------------------------------------- */

int64_t store_start(store **made, const folder *in, const sb_journal_options *options)
{
    store *of = calloc(1, sizeof *of);
    pthread_condattr_t monotonic;
    if (!of)
        return fail_system("memory for a journal");
    of->in = *in;
    of->segment_bytes = options->segment_bytes;
    of->spares_max = options->spares < SPARES_MAX - 1 ? options->spares : SPARES_MAX - 1;
    if (options->node)
        memcpy(of->node, options->node, sizeof of->node);
    of->keeps_reserve = options->reserve > 0;
    of->reserve_wanted = of->keeps_reserve;
    of->ready_code = SB_EMPTY;
    pthread_mutex_init(&of->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&of->asked, &monotonic);
    pthread_cond_init(&of->done, &monotonic);
    int64_t code = thread_start(&of->thread, run, of, "the journal's segments");
    if (code != SB_OK) {
        free(of);
        return code;
    }
    *made = of;
    return SB_OK;
}

/* Until its thread has done something: it goes on also if it was to be quiet meanwhile. */
static void await_done(store *of)
{
    go_on(of);
    pthread_cond_wait(&of->done, &of->mutex);
}

/* If it could not be got ready before: try again. */
static void await_ready(store *of)
{
    if (of->ready_code != SB_OK)
        of->ready_code = SB_EMPTY;
    go_on(of);
    while (of->ready_code == SB_EMPTY)
        await_done(of);
}

/* A spare is there, so the thread rests: it is named here and now, and not by somebody who lets all
 * others pass. */
int64_t store_begin(store *of, int64_t epoch, int64_t serial, written *first)
{
    pthread_mutex_lock(&of->mutex);
    of->epoch = epoch;
    await_ready(of);
    int64_t code = of->ready_code;
    if (code != SB_OK)
        code = fail(code, "%s", of->text);
    else {
        spare from = of->spares[--of->spare_count];
        code = spare_become(of, &from, serial, first);
        if (code == SB_OK)
            of->serial = serial + 1;
        else if (code == SB_STALE)
            of->spares[of->spare_count++] = from;
        else
            spare_drop(of, &from);
        of->ready_code = code == SB_STALE ? SB_OK : SB_EMPTY;
        of->holds_back = of->claims = of->clears = code == SB_OK;
        of->held_until = 0;
    }
    pthread_mutex_unlock(&of->mutex);
    return code;
}

int64_t store_prepared(store *of)
{
    pthread_mutex_lock(&of->mutex);
    int64_t code = of->ready_code;
    if (code == SB_OK || code == SB_EMPTY) {
        pthread_mutex_unlock(&of->mutex);
        return code;
    }
    code = fail(code, "%s", of->text);
    of->ready_code = SB_EMPTY;
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
    return code;
}

void store_reserves(store *of, int64_t segments)
{
    int64_t wanted = segments < RESERVE_MAX ? segments : RESERVE_MAX;
    if (!of->keeps_reserve || of->reserve_wanted == wanted)
        return;
    pthread_mutex_lock(&of->mutex);
    of->reserve_wanted = wanted;
    of->asks_reserve = true; /* not with the next segment only: pages may fill the disk before */
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
}

bool store_has_reserve(store *of)
{
    bool whole = reserve_is_whole(of);
    if (whole)
        return true;
    pthread_mutex_lock(&of->mutex);
    if (of->ready_code != SB_OK)
        of->ready_code = SB_EMPTY;
    go_on(of);
    pthread_mutex_unlock(&of->mutex);
    return false;
}

bool store_is_tight(store *of)
{
    pthread_mutex_lock(&of->mutex);
    bool is_tight = of->is_tight;
    pthread_mutex_unlock(&of->mutex);
    return is_tight;
}

void store_go_on_soon(store *of)
{
    pthread_mutex_lock(&of->mutex);
    of->held_until = monotonic_deadline(SOON_NS);
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
}

/* One that is larger than all others is made here and now.  What is ready comes before it, and can
 * not be used behind it. */
static int64_t take_large(store *from, int64_t bytes, reserve_use opens, written *taken)
{
    spare made;
    int64_t code = spare_make(from, bytes, &made);
    if (code == SB_DISK_FULL && opens == RESERVE_ALL) {
        pthread_mutex_lock(&from->mutex);
        from->gives_way = true;
        while (from->gives_way)
            await_done(from);
        pthread_mutex_unlock(&from->mutex);
        code = spare_make(from, bytes, &made);
    }
    if (code != SB_OK)
        return code;
    pthread_mutex_lock(&from->mutex);
    go_on(from);
    while (from->ready_code == SB_EMPTY)
        await_done(from);
    int64_t serial = from->serial++;
    if (from->ready_code == SB_OK) {
        close(from->ready.file);
        serials_push(&from->dead, from->ready.serial);
        from->ready_code = SB_EMPTY;
        pthread_cond_signal(&from->asked);
    }
    pthread_mutex_unlock(&from->mutex);
    code = spare_become(from, &made, serial, taken);
    if (code != SB_OK)
        spare_drop(from, &made);
    return code;
}

int64_t store_take(store *from, int64_t bytes, reserve_use opens, written *taken)
{
    if (bytes > from->segment_bytes)
        return take_large(from, (bytes + JOURNAL_PAGE - 1) & -JOURNAL_PAGE, opens, taken);
    pthread_mutex_lock(&from->mutex);
    from->counts.waited += from->ready_code != SB_OK;
    from->opens_reserve = opens;
    await_ready(from);
    from->opens_reserve = RESERVE_NONE;
    int64_t code = from->ready_code;
    if (code == SB_OK) {
        *taken = from->ready;
        from->ready = (written){.file = -1};
        from->ready_code = SB_EMPTY;
        pthread_cond_signal(&from->asked);
    } else
        code = fail(code, "%s", from->text);
    pthread_mutex_unlock(&from->mutex);
    return code;
}

void store_syncs_rarely(store *of)
{
    atomic_store(&of->syncs_rarely, true);
}

void store_recycle(store *of, int64_t serial)
{
    pthread_mutex_lock(&of->mutex);
    serials_push(&of->dead, serial); /* without memory it stays until somebody begins anew */
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
}

void store_set_aside(store *of, int64_t serial)
{
    store_recycle(of, -serial);
}

int64_t store_learn(store *of, const listed *entries, int64_t count, bool with_runs)
{
    bool pushed = true;
    pthread_mutex_lock(&of->mutex);
    of->with_runs = with_runs;
    for (int64_t each = 0; each < count && pushed; each++) {
        pushed = serials_push(&of->unknown, entries[each].serial);
        if (pushed && !serials_push(&of->unknown, entries[each].end)) {
            of->unknown.count--;
            pushed = false;
        }
    }
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
    return pushed ? SB_OK : fail_system("memory for a list of segments");
}

bool store_learnt(store *of, learnt *told)
{
    pthread_mutex_lock(&of->mutex);
    bool any = of->found_count > 0;
    if (any)
        *told = of->found[--of->found_count];
    pthread_mutex_unlock(&of->mutex);
    return any;
}

void store_note(store *of, const listed *reached)
{
    pthread_mutex_lock(&of->mutex);
    of->reached = *reached;
    pthread_cond_signal(&of->asked);
    pthread_mutex_unlock(&of->mutex);
}

void store_counted(store *of, store_counts *counts)
{
    pthread_mutex_lock(&of->mutex);
    *counts = of->counts;
    counts->spares = of->spare_count + (of->serial && of->ready_code == SB_OK);
    pthread_mutex_unlock(&of->mutex);
}

int64_t store_wait(store *of, int64_t timeout_ns)
{
    int64_t deadline = monotonic_deadline(timeout_ns);
    struct timespec until = {deadline / 1000000000, deadline % 1000000000};
    int error = 0;
    pthread_mutex_lock(&of->mutex);
    go_on(of);
    while (!error && (of->busy || of->reached.serial || of->clears || of->ready_code == SB_EMPTY ||
                      of->dead.count || of->unknown.count))
        error = pthread_cond_timedwait(&of->done, &of->mutex, &until);
    pthread_mutex_unlock(&of->mutex);
    return error ? SB_EMPTY : SB_OK;
}

/* What was ready is no segment.  That its name is gone need not be synced: who makes a segment of
 * it again syncs the folder. */
static void give_back(store *of)
{
    while (of->reserve_count > 0)
        spare_give(of, &of->reserve[--of->reserve_count]);
    while (of->spare_count > 0)
        spare_give(of, &of->spares[--of->spare_count]);
    if (of->serial == 0 || of->ready_code != SB_OK)
        return;
    spare ready = {.file = of->ready.file};
    char name[SEGMENT_NAME_ROOM];
    segment_file_name(name, of->ready.serial);
    if (spare_name(ready.name, atomic_load(&of->syncs_rarely)) != SB_OK ||
        renameat(of->in.file, name, of->in.file, ready.name) != 0)
        unlinkat(of->in.file, name, 0);
    spare_give(of, &ready);
}

void store_leave(store *of)
{
    atomic_store(&of->leaves, true);
}

void store_quiet(store *of)
{
    store_leave(of);
    pthread_mutex_lock(&of->mutex);
    of->holds_back = true;
    of->held_until = 0;
    while (of->busy && of->holds_back)
        pthread_cond_wait(&of->done, &of->mutex);
    pthread_mutex_unlock(&of->mutex);
}

void store_stop(store *stopped)
{
    pthread_mutex_lock(&stopped->mutex);
    atomic_store(&stopped->stop, true);
    pthread_cond_signal(&stopped->asked);
    pthread_mutex_unlock(&stopped->mutex);
    pthread_join(stopped->thread, NULL);
    if (stopped->clears && !atomic_load(&stopped->leaves))
        folder_clear(&stopped->in);
    if (stopped->reached.serial)
        reached_write(&stopped->in, &stopped->reached);
    give_back(stopped);
    while (stopped->found_count > 0) {
        learnt *left = &stopped->found[--stopped->found_count];
        tally_free(&left->tally);
        free(left->runs.all);
    }
    free(stopped->found);
    free(stopped->dead.all);
    free(stopped->unknown.all);
    pthread_cond_destroy(&stopped->asked);
    pthread_cond_destroy(&stopped->done);
    pthread_mutex_destroy(&stopped->mutex);
    free(stopped);
}
