/* How far the segment that is written is synced.
 *
 * A frame is synced before the next one is written.  The writer of a copy may put that off: then it
 * is ahead of the disk by up to RECORD_BEHIND_MAX frames, each record says by how many (format.h),
 * and another thread may sync what is written while the writer goes on.  All is synced before a
 * segment ends, before one is let go of, and when the journal is closed.
 *
 * What the kernel could not sync it may have dropped, and a second sync would not tell: so the
 * first that fails is the last. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "journal/journal.h"
#include "journal/writer.h"

#define REACHED_NS 100000000

void sync_begin(sb_journal *journal)
{
    pthread_mutex_init(&journal->sync.mutex, NULL);
}

void sync_end(sb_journal *journal)
{
    pthread_mutex_destroy(&journal->sync.mutex);
}

void journal_syncs_later(sb_journal *journal)
{
    journal->sync.is_later = true;
    store_syncs_rarely(journal->store);
}

static int64_t sync_failed(int64_t serial, int error)
{
    return fail(SB_JOURNAL_FAILED, "syncing segment %016llx: %s", (unsigned long long)serial,
                strerror(error));
}

/* --- of the writer ---------------------------------------------------------------------------- */

static void note_reached(sb_journal *journal)
{
    const listed now = {journal->current.serial, journal->end};
    if (now.serial == journal->noted.serial && now.end == journal->noted.end)
        return;
    journal->reached_at = sb_system_clock();
    journal->noted = now;
    store_note(journal->store, &now);
}

void journal_rests(sb_journal *journal)
{
    if (journal->current.file >= 0 && !journal->fresh && !journal->failed)
        note_reached(journal);
}

int64_t sync_behind(sb_journal *journal)
{
    pthread_mutex_lock(&journal->sync.mutex);
    int64_t behind = journal->sync.written - journal->sync.synced;
    pthread_mutex_unlock(&journal->sync.mutex);
    return behind;
}

static int64_t sync_now(sb_journal *journal)
{
    if (fdatasync(journal->current.file) != 0)
        return journal_fatal(journal, sync_failed(journal->current.serial, errno));
    pthread_mutex_lock(&journal->sync.mutex);
    journal->sync.synced = journal->sync.written;
    journal->sync.bytes = 0;
    pthread_mutex_unlock(&journal->sync.mutex);
    if (journal->sync.synced == 1 || sb_system_clock() - journal->reached_at >= REACHED_NS)
        note_reached(journal);
    return SB_OK;
}

int64_t journal_sync(sb_journal *journal)
{
    int64_t code = journal_usable(journal);
    return code == SB_OK && sync_behind(journal) > 0 ? sync_now(journal) : code;
}

int64_t sync_make_room(sb_journal *journal)
{
    pthread_mutex_lock(&journal->sync.mutex);
    int error = journal->sync.error;
    bool is_full = journal->sync.written - journal->sync.synced >= RECORD_BEHIND_MAX ||
                   journal->sync.bytes >= SYNC_BYTES_MAX;
    pthread_mutex_unlock(&journal->sync.mutex);
    if (error)
        return journal_fatal(journal, sync_failed(journal->current.serial, error));
    return is_full ? sync_now(journal) : SB_OK;
}

void sync_written(sb_journal *journal, int64_t bytes)
{
    pthread_mutex_lock(&journal->sync.mutex);
    journal->sync.written++;
    journal->sync.bytes += bytes;
    pthread_mutex_unlock(&journal->sync.mutex);
}

void sync_turn_over(sb_journal *journal, const written *next)
{
    pthread_mutex_lock(&journal->sync.mutex);
    close(journal->current.file);
    journal->current = *next;
    journal->sync.written = journal->sync.synced = journal->sync.bytes = 0;
    pthread_mutex_unlock(&journal->sync.mutex);
}

/* --- beside it -------------------------------------------------------------------------------- */

int64_t journal_sync_beside(sb_journal *journal)
{
    pthread_mutex_lock(&journal->sync.mutex);
    int64_t serial = journal->current.serial, upto = journal->sync.written;
    int64_t bytes = journal->sync.bytes;
    bool is_behind = upto > journal->sync.synced;
    int file = is_behind ? fcntl(journal->current.file, F_DUPFD_CLOEXEC, 0) : -1;
    pthread_mutex_unlock(&journal->sync.mutex);
    if (!is_behind)
        return SB_OK;
    int error = file < 0 || fdatasync(file) != 0 ? errno : 0;
    if (file >= 0)
        close(file);
    pthread_mutex_lock(&journal->sync.mutex);
    if (error)
        journal->sync.error = error;
    else if (journal->current.serial == serial && journal->sync.synced < upto) {
        journal->sync.synced = upto;
        journal->sync.bytes -= bytes < journal->sync.bytes ? bytes : journal->sync.bytes;
    }
    pthread_mutex_unlock(&journal->sync.mutex);
    return error ? sync_failed(serial, error) : SB_OK;
}
