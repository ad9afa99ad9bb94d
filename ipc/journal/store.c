/* The files that become segments: a thread writes them over, or recycles old ones, and has the next
 * one ready before it is needed.
 *
 *   spare, written over ──► header ──► fdatasync ──► name ──► fsync of the folder ──► ready
 *   segment that no list has ──► name away ──► fsync of the folder ──► spare, reserve, or removed
 *
 * The reserve is one segment's room that is set aside and not used while there is any other: by a
 * writer only if that makes another segment dead, and by whoever begins after the writer has died.
 *
 * It also looks through segments of before, of which it is not known what they have. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/writer.h"

#define SPARES_MAX 64
#define WRITE_OVER_BYTES ((int64_t)1 << 20)
#define NICE 10

typedef struct spare {
    char name[SEGMENT_NAME_ROOM];
    int file;
    int64_t bytes;
} spare;

typedef struct serials {
    int64_t *all;
    int64_t count, room;
} serials;

struct store {
    folder in; /* somebody else's */
    int64_t segment_bytes, spares_max;
    uint8_t node[16];
    pthread_mutex_t mutex;
    pthread_cond_t asked, done;
    pthread_t thread;
    bool stop, busy;
    bool holds_back; /* the first frame comes first: until then the disk is for that */
    bool clears;
    int64_t epoch, serial; /* of the next one; 0: they have no names yet */
    spare spares[SPARES_MAX];
    int64_t spare_count;
    bool keeps_reserve, has_reserve;
    bool asks_reserve;  /* to be set aside, if there is room */
    bool owes_reserve;  /* it was used: the next segment that dies takes its place */
    bool opens_reserve; /* whoever waits for a segment may have it */
    bool is_tight;      /* there was no room: others may want what is not needed at once */
    bool skips_serial;  /* its name is taken, by what could not be removed */
    bool gives_way;     /* all of this is to go: one larger than that is wanted */
    spare reserve;
    written ready;
    int64_t ready_code; /* SB_OK: it is; SB_EMPTY: it is to be got ready; or why it is not */
    serials dead; /* below 0: damaged, to be set aside */
    serials unknown; /* and what is known of their ends, behind each */
    bool with_runs;
    listed reached; /* to be noted, or zeros */
    learnt *found;
    int64_t found_count, found_room;
    store_counts counts;
    char text[512]; /* of the ready_code */
};

/* --- a list of serials ------------------------------------------------------------------------ */

static bool push(serials *to, int64_t serial)
{
    if (to->count == to->room) {
        int64_t room = to->room ? 2 * to->room : 64;
        int64_t *moved = realloc(to->all, (size_t)room * sizeof *moved);
        if (!moved)
            return false;
        to->all = moved;
        to->room = room;
    }
    to->all[to->count++] = serial;
    return true;
}

static int64_t pop(serials *from)
{
    int64_t first = from->all[0];
    memmove(from->all, from->all + 1, (size_t)--from->count * sizeof first);
    return first;
}

/* --- files ------------------------------------------------------------------------------------ */

/* What errno says: a full disk is no failure. */
static int64_t refused(const char *what, const char *name)
{
    return fail(is_full_disk(errno) ? SB_DISK_FULL : SB_JOURNAL_FAILED, "%s %s: %s", what, name,
                strerror(errno));
}

int64_t write_all(int file, const unsigned char *bytes, int64_t count, int64_t at)
{
    while (count > 0) {
        ssize_t wrote = pwrite(file, bytes, (size_t)count, at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return refused("writing", "the journal");
        bytes += wrote;
        count -= wrote;
        at += wrote;
    }
    return SB_OK;
}

static int64_t spare_name(char *name)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return fail_system("random numbers");
    snprintf(name, SEGMENT_NAME_ROOM, "%016llx.spare", (unsigned long long)random);
    return SB_OK;
}

static void spare_drop(const store *of, spare *dropped)
{
    unlinkat(of->in.file, dropped->name, 0);
    close(dropped->file);
}

/* Appending costs the file system's own journal at each sync, overwriting does not. */
static int64_t write_over(int file, int64_t bytes)
{
    unsigned char *zeros = calloc(1, (size_t)WRITE_OVER_BYTES);
    if (!zeros)
        return fail_system("memory for zeros");
    int64_t code = SB_OK;
    for (int64_t at = 0; at < bytes && code == SB_OK; at += WRITE_OVER_BYTES) {
        int64_t left = bytes - at;
        code = write_all(file, zeros, left < WRITE_OVER_BYTES ? left : WRITE_OVER_BYTES, at);
        /* piece by piece: who is killed dies only when the sync that it is in has ended, and its
         * backup waits for that */
        sync_file_range(file, at, WRITE_OVER_BYTES,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
    }
    free(zeros);
    if (code == SB_OK && fdatasync(file) != 0)
        code = refused("syncing", "a new segment");
    return code;
}

static int64_t spare_open(store *of, spare *made)
{
    struct stat status;
    for (;;) {
        int64_t code = spare_name(made->name);
        if (code != SB_OK)
            return code;
        made->file = openat(of->in.file, made->name,
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (made->file < 0)
            return refused("making a segment in", of->in.path);
        /* whoever clears the folder may have taken it for a left-over before it was locked */
        if (spare_lock(made->file) && fstat(made->file, &status) == 0 && status.st_nlink > 0)
            return SB_OK;
        close(made->file);
    }
}

static int64_t spare_make(store *of, int64_t bytes, spare *made)
{
    int64_t code = spare_open(of, made);
    if (code != SB_OK)
        return code;
    made->bytes = bytes;
    /* asked first, so that a full disk costs nothing however often it is looked at */
    if (fallocate(made->file, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && is_full_disk(errno))
        code = refused("making a segment in", of->in.path);
    if (code == SB_OK)
        code = write_over(made->file, bytes);
    if (code != SB_OK)
        spare_drop(of, made);
    return code;
}

/* --- the reserve ------------------------------------------------------------------------------ */

/* Its blocks are set aside; it is written over when it is used. */
static void reserve_make(store *of)
{
    spare made;
    if (spare_open(of, &made) != SB_OK)
        return;
    made.bytes = of->segment_bytes;
    if (fallocate(made.file, 0, 0, made.bytes) != 0) {
        spare_drop(of, &made);
        return;
    }
    of->reserve = made;
    of->has_reserve = true;
}

/* What somebody who died has left: a segment's room, where there may be no other. */
static bool spare_claim(store *of, spare *claimed)
{
    claimed->bytes = of->segment_bytes;
    claimed->file = folder_claim(&of->in, of->segment_bytes, claimed->name);
    return claimed->file >= 0;
}

/* On a full disk: what the dead have left, or the reserve. */
static int64_t spare_find(store *of, bool opens_reserve, spare *found)
{
    bool is_begun = of->serial > 0;
    if (!is_begun && !spare_claim(of, found)) {
        folder_clear(&of->in);
        return spare_make(of, of->segment_bytes, found);
    }
    if (is_begun) {
        if (!opens_reserve || !of->has_reserve)
            return SB_DISK_FULL;
        *found = of->reserve;
        of->has_reserve = false;
    }
    of->owes_reserve = of->keeps_reserve;
    int64_t code = write_over(found->file, found->bytes);
    if (code != SB_OK)
        spare_drop(of, found);
    return code;
}

/* Its header, and then its name: what has the name of a segment is one. */
static int64_t spare_become(store *of, const spare *from, int64_t serial, written *made)
{
    static const char zeros[sizeof(journal_header)];
    struct {
        journal_header header;
        char blank[sizeof zeros]; /* what was here before does not look like a torn frame */
    } pages = {.header = {
        .magic = JOURNAL_MAGIC, .version = JOURNAL_VERSION, .page = JOURNAL_PAGE,
        .serial = serial, .epoch = of->epoch, .bytes = from->bytes,
    }};
    char name[SEGMENT_NAME_ROOM];
    memcpy(pages.header.node, of->node, sizeof of->node);
    if (getrandom(&pages.header.salt, sizeof pages.header.salt, 0) != sizeof pages.header.salt)
        return fail_system("random numbers");
    pages.header.crc = header_crc(&pages.header);
    segment_file_name(name, serial);
    int64_t code = write_all(from->file, (unsigned char *)&pages, sizeof pages, 0);
    if (code == SB_OK && fdatasync(from->file) != 0)
        code = refused("syncing the header of", name);
    if (code != SB_OK)
        return code;
    if (linkat(of->in.file, from->name, of->in.file, name, 0) != 0)
        return errno == EEXIST ? fail(SB_STALE, "%s/%s exists: another has begun it, and this one "
                                      "must end", of->in.path, name)
                               : refused("naming", name);
    if (unlinkat(of->in.file, from->name, 0) != 0)
        code = refused("renaming to", name);
    if (code == SB_OK)
        code = folder_sync(&of->in);
    if (code == SB_DISK_FULL) /* nothing is in it yet: another one has its name later, if it goes */
        of->skips_serial = unlinkat(of->in.file, name, 0) != 0;
    *made = (written){from->file, serial, from->bytes, pages.header.crc};
    return code;
}

/* The name goes for good before the file is written to: a list of before may still have it. */
static void recycle(store *of, int64_t serial, bool is_awaited)
{
    spare made;
    struct stat status;
    char name[SEGMENT_NAME_ROOM];
    segment_file_name(name, serial);
    if (trusted_open(of->in.file, of->in.path, name, O_RDWR, &of->in.whose, &made.file) != SB_OK)
        return;
    spare_lock(made.file);
    bool is_reserve = of->keeps_reserve && !of->has_reserve && (of->owes_reserve || !is_awaited);
    int64_t most = of->is_tight && of->keeps_reserve ? is_awaited : of->spares_max;
    bool wanted = (is_reserve || of->spare_count < most) && fstat(made.file, &status) == 0 &&
                  status.st_size == of->segment_bytes && spare_name(made.name) == SB_OK;
    if (!wanted || renameat(of->in.file, name, of->in.file, made.name) != 0) {
        unlinkat(of->in.file, name, 0);
        close(made.file);
        of->counts.deleted++;
        return;
    }
    made.bytes = of->segment_bytes;
    if (folder_sync(&of->in) != SB_OK) {
        spare_drop(of, &made);
        return;
    }
    if (is_reserve) {
        of->reserve = made;
        of->has_reserve = true;
        of->owes_reserve = false;
    } else
        of->spares[of->spare_count++] = made;
    of->counts.recycled++;
}

/* A damaged file is no spare, and somebody may want to look at it. */
static void set_aside(const store *of, int64_t serial)
{
    char name[SEGMENT_NAME_ROOM], aside[SEGMENT_NAME_ROOM];
    segment_file_name(name, serial);
    snprintf(aside, sizeof aside, "%.40s.damaged", name);
    renameat(of->in.file, name, of->in.file, aside);
}

/* --- what is in segments of before ------------------------------------------------------------ */

static int64_t run_add(runs_found *to, int64_t queue, int64_t position)
{
    run_found *last = to->count ? &to->all[to->count - 1] : NULL;
    if (last && last->queue == queue && last->last + 1 == position) {
        last->last = position;
        return SB_OK;
    }
    if (to->count == to->room) {
        int64_t room = to->room ? 2 * to->room : 64;
        run_found *moved = realloc(to->all, (size_t)room * sizeof *moved);
        if (!moved)
            return fail_system("memory for what a segment has");
        to->all = moved;
        to->room = room;
    }
    to->all[to->count++] = (run_found){queue, position, position};
    return SB_OK;
}

static int64_t learn_record(learnt *told, const record_head *head, bool with_runs)
{
    int64_t queue = (int64_t)head->queue, position = record_position(head), code = SB_OK;
    if (kind_lasts(record_kind(head)))
        code = tally_add(&told->tally, queue, position, record_bytes(head->length));
    if (code == SB_OK && with_runs && record_kind(head) == SB_RECORD_MESSAGE)
        code = run_add(&told->runs, queue, position);
    return code;
}

/* The name alone: a line of the log is short. */
static const char *name_of(const reader *in)
{
    const char *name = strrchr(in->path, '/');
    return name ? name + 1 : in->path;
}

static int64_t learn_damaged(const reader *in, int64_t offset, const char *what)
{
    return fail(SB_JOURNAL_DAMAGED, "%s, offset %lld: %s", name_of(in), (long long)offset, what);
}

/* Its frames, up to the end that is known, or to where they end. */
static int64_t learn_frames(reader *in, learnt *told, int64_t known, bool with_runs)
{
    int64_t bad = 0, number = 1, end = JOURNAL_PAGE, code = SB_OK, next;
    int wrong = RECORD_GOOD;
    while (end != known && (next = reader_frame(in, end, number, &bad, &wrong))) {
        for (; end < next && code == SB_OK; end += record_bytes(reader_again(in, end)->length))
            code = learn_record(told, reader_again(in, end), with_runs);
        if (code != SB_OK)
            return code;
        number++;
    }
    told->end = end;
    if (end == known)
        return SB_OK;
    if (end_is_known(known) || end < end_reached(known) ||
        reader_search(in, bad, number + 1, INT64_MAX))
        return learn_damaged(in, bad, record_wrong(wrong));
    if (in->file_bytes < in->bytes)
        return learn_damaged(in, in->file_bytes, "the file is shorter than its header says");
    return SB_OK;
}

/* A frame that its writer was killed before it had synced it counts from now on: so it is
 * synced. */
static int64_t learn(const store *of, learnt *told, int64_t known)
{
    reader segment;
    int64_t code = reader_open(&segment, &of->in, told->serial, false);
    if (code == SB_NOT_FOUND) {
        reader_close(&segment);
        return known == UNKNOWN_END
                   ? code
                   : fail(SB_JOURNAL_DAMAGED, "%s is missing", name_of(&segment));
    }
    if (code != SB_OK)
        return code;
    if (!node_fits(segment.node, of->node))
        code = learn_damaged(&segment, 0, "it is a segment of another store");
    else if (fdatasync(segment.file) != 0)
        code = learn_damaged(&segment, 0, strerror(errno));
    else
        code = learn_frames(&segment, told, known, of->with_runs);
    reader_close(&segment);
    return code;
}

static void learn_one(store *of)
{
    learnt told = {.serial = pop(&of->unknown)};
    int64_t known = pop(&of->unknown);
    pthread_mutex_unlock(&of->mutex);
    told.code = learn(of, &told, known);
    snprintf(told.text, sizeof told.text, "%s", sb_detail(told.code));
    pthread_mutex_lock(&of->mutex);
    if (of->found_count == of->found_room) {
        int64_t room = of->found_room ? 2 * of->found_room : 16;
        learnt *moved = realloc(of->found, (size_t)room * sizeof *moved);
        if (!moved) {
            tally_free(&told.tally); /* it stays unknown, and is kept */
            free(told.runs.all);
            return;
        }
        of->found = moved;
        of->found_room = room;
    }
    of->found[of->found_count++] = told;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* The mutex is let go while the disk works: nobody else touches the spares. */
static void make_ready(store *of)
{
    written ready = {.file = -1};
    spare from;
    int64_t code = SB_OK, serial = of->serial;
    bool opens_reserve = of->opens_reserve;
    pthread_mutex_unlock(&of->mutex);
    if (of->spare_count > 0)
        from = of->spares[--of->spare_count];
    else {
        code = spare_make(of, of->segment_bytes, &from);
        of->counts.made += code == SB_OK;
        of->is_tight = code == SB_DISK_FULL;
        if (code == SB_DISK_FULL)
            code = spare_find(of, opens_reserve, &from);
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
    if (of->has_reserve)
        spare_drop(of, &of->reserve);
    pthread_mutex_lock(&of->mutex);
    of->owes_reserve |= of->has_reserve;
    of->has_reserve = of->gives_way = false;
}

static void rest(store *of)
{
    of->busy = false;
    pthread_cond_broadcast(&of->done);
    pthread_cond_wait(&of->asked, &of->mutex);
}

static void *run(void *argument)
{
    store *of = argument;
    /* what is made ready is for later; a confirm, just after a failover above all, is for now */
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    pthread_mutex_lock(&of->mutex);
    while (!of->stop) {
        of->busy = true;
        if (of->holds_back)
            rest(of);
        else if (of->reached.serial)
            note(of);
        else if (of->gives_way)
            give_way(of);
        else if (of->ready_code == SB_EMPTY && (of->spare_count > 0 || of->dead.count == 0))
            make_ready(of);
        else if (of->dead.count > 0) {
            int64_t serial = pop(&of->dead);
            bool is_awaited = of->ready_code != SB_OK && of->spare_count == 0;
            pthread_mutex_unlock(&of->mutex);
            if (serial < 0)
                set_aside(of, -serial);
            else
                recycle(of, serial, is_awaited);
            pthread_mutex_lock(&of->mutex);
        } else if (of->clears) {
            of->clears = false;
            pthread_mutex_unlock(&of->mutex);
            if (of->keeps_reserve && !of->has_reserve)
                of->has_reserve = spare_claim(of, &of->reserve);
            folder_clear(&of->in);
            pthread_mutex_lock(&of->mutex);
        } else if (of->asks_reserve && of->serial > 0 && of->ready_code == SB_OK) {
            of->asks_reserve = false;
            pthread_mutex_unlock(&of->mutex);
            if (!of->has_reserve)
                reserve_make(of);
            pthread_mutex_lock(&of->mutex);
        } else if (of->unknown.count > 0)
            learn_one(of);
        else
            rest(of);
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

static void go_on(store *of)
{
    of->holds_back = false;
    of->asks_reserve = of->keeps_reserve;
    pthread_cond_signal(&of->asked);
}

/* If it could not be got ready before: try again. */
static void await_ready(store *of)
{
    if (of->ready_code != SB_OK)
        of->ready_code = SB_EMPTY;
    go_on(of);
    while (of->ready_code == SB_EMPTY)
        pthread_cond_wait(&of->done, &of->mutex);
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
        of->holds_back = of->clears = code == SB_OK;
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

void store_go_on(store *of)
{
    pthread_mutex_lock(&of->mutex);
    go_on(of);
    pthread_mutex_unlock(&of->mutex);
}

/* One that is larger than all others is made here and now.  What is ready comes before it, and can
 * not be used behind it. */
static int64_t take_large(store *from, int64_t bytes, bool opens_reserve, written *taken)
{
    spare made;
    int64_t code = spare_make(from, bytes, &made);
    if (code == SB_DISK_FULL && opens_reserve) {
        pthread_mutex_lock(&from->mutex);
        from->gives_way = true;
        for (go_on(from); from->gives_way;)
            pthread_cond_wait(&from->done, &from->mutex);
        pthread_mutex_unlock(&from->mutex);
        code = spare_make(from, bytes, &made);
    }
    if (code != SB_OK)
        return code;
    pthread_mutex_lock(&from->mutex);
    go_on(from);
    while (from->ready_code == SB_EMPTY)
        pthread_cond_wait(&from->done, &from->mutex);
    int64_t serial = from->serial++;
    if (from->ready_code == SB_OK) {
        close(from->ready.file);
        push(&from->dead, from->ready.serial);
        from->ready_code = SB_EMPTY;
        pthread_cond_signal(&from->asked);
    }
    pthread_mutex_unlock(&from->mutex);
    code = spare_become(from, &made, serial, taken);
    if (code != SB_OK)
        spare_drop(from, &made);
    return code;
}

int64_t store_take(store *from, int64_t bytes, bool opens_reserve, written *taken)
{
    if (bytes > from->segment_bytes)
        return take_large(from, (bytes + JOURNAL_PAGE - 1) & -JOURNAL_PAGE, opens_reserve, taken);
    pthread_mutex_lock(&from->mutex);
    from->counts.waited += from->ready_code != SB_OK;
    from->opens_reserve = opens_reserve;
    await_ready(from);
    from->opens_reserve = false;
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

void store_recycle(store *of, int64_t serial)
{
    pthread_mutex_lock(&of->mutex);
    push(&of->dead, serial); /* without memory it stays until somebody begins anew */
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
        pushed = push(&of->unknown, entries[each].serial);
        if (pushed && !push(&of->unknown, entries[each].end)) {
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

void store_stop(store *stopped)
{
    pthread_mutex_lock(&stopped->mutex);
    stopped->stop = true;
    pthread_cond_signal(&stopped->asked);
    pthread_mutex_unlock(&stopped->mutex);
    pthread_join(stopped->thread, NULL);
    if (stopped->clears)
        folder_clear(&stopped->in);
    if (stopped->reached.serial)
        reached_write(&stopped->in, &stopped->reached);
    if (stopped->serial && stopped->ready_code == SB_OK) {
        char name[SEGMENT_NAME_ROOM];
        segment_file_name(name, stopped->ready.serial);
        unlinkat(stopped->in.file, name, 0);
        close(stopped->ready.file);
    }
    while (stopped->spare_count > 0)
        spare_drop(stopped, &stopped->spares[--stopped->spare_count]);
    if (stopped->has_reserve)
        spare_drop(stopped, &stopped->reserve);
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
