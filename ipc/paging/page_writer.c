/* Writing page files: records gathered, one write, for durable queues one sync (page_store.c). */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"
#include "paging/page_file.h"
#include "paging/page_store.h"
#include "vhost/vhost.h"

#define PUT_BYTES (INT64_C(1) << 20)

static int64_t write_out(page_store *to, const void *bytes, int64_t count, int64_t at)
{
    while (count > 0) {
        ssize_t wrote = pwrite(to->writer, bytes, (size_t)count, at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return page_refused(to, "writing", to->next - 1);
        bytes = (const char *)bytes + wrote;
        count -= wrote;
        at += wrote;
    }
    return SB_OK;
}

static int make_file(page_store *to, const char *name)
{
    const int how = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int made = openat(to->folder, name, how, 0600);
    if (made >= 0 || errno != EEXIST || !to->syncs)
        return made;
    unlinkat(to->folder, name, 0); /* by one who was replaced: we know of all others */
    return openat(to->folder, name, how, 0600);
}

static int64_t begin_file(page_store *to)
{
    char name[PAGE_NAME_ROOM];
    int64_t code = page_make_folder(to);
    if (code != SB_OK)
        return code;
    page_header header = {.magic = PAGE_MAGIC, .version = PAGE_VERSION, .serial = to->next,
                          .epoch = to->epoch, .boot = boot_hash(), .ahead = page_ahead_ns()};
    if (getrandom(&header.salt, sizeof header.salt, 0) != sizeof header.salt)
        return fail_system("random numbers");
    header.crc = crc32c(0, &header, offsetof(page_header, crc));
    snprintf(name, sizeof name, PAGE_NAME, (unsigned long long)to->next);
    to->writer = make_file(to, name);
    if (to->writer < 0)
        return page_refused(to, "making", to->next);
    to->next++;
    if (fallocate(to->writer, FALLOC_FL_KEEP_SIZE, 0, to->page_bytes) != 0 &&
        errno != EOPNOTSUPP && errno != EINTR)
        code = page_refused(to, "setting space aside for", to->next - 1);
    if (code == SB_OK)
        code = write_out(to, &header, sizeof header, 0);
    if (code != SB_OK) {
        unlinkat(to->folder, name, 0);
        close(to->writer);
        to->writer = -1;
        to->next--;
        return code;
    }
    to->writer_seed = header.crc;
    to->written = sizeof header;
    to->is_new = true;
    return SB_OK;
}

void page_end_file(page_store *to)
{
    if (page_is_being_written(to))
        to->end = to->written; /* for its reader */
    close(to->writer);
    to->writer = -1;
}

/* Of the durable: what was written is there after a power loss, under its name. */
static int64_t sync_file(page_store *to)
{
    if (!to->syncs)
        return SB_OK;
    if (fdatasync(to->writer) != 0 || (to->is_new && fsync(to->folder) != 0))
        return page_refused(to, "syncing", to->next - 1);
    to->is_new = false;
    return SB_OK;
}

bool page_store_is_due(const page_store *of)
{
    return of->put.used >= PUT_BYTES ||
           (of->writer >= 0 && of->written + of->put.used >= of->page_bytes);
}

int64_t page_store_put(page_store *to, const paged_message *message)
{
    int64_t code = SB_OK, bytes = record_bytes(message->length);
    if (page_store_is_due(to))
        code = page_store_write(to);
    if (code == SB_OK && to->writer < 0)
        code = begin_file(to);
    if (code != SB_OK)
        return code;
    unsigned char *at = buffer_room(&to->put, bytes);
    if (!at)
        return fail_system("memory for a message");
    record_head head = {
        .length = (uint32_t)message->length,
        .where = (uint64_t)message->position |
                 (uint64_t)(message->chunk ? SB_RECORD_MESSAGE : SB_RECORD_RETIRED) << KIND_SHIFT,
    };
    memset(at + bytes - 8, 0, 8);
    if (message->chunk)
        head.body_crc = crc32c_copy(0, at + HEAD, message->chunk, (size_t)message->length);
    head.crc = record_crc(to->writer_seed, to->written + to->put.used, &head);
    memcpy(at, &head, sizeof head);
    to->put.used += bytes;
    return SB_OK;
}

int64_t page_store_write(page_store *to)
{
    if (to->put.used == 0)
        return SB_OK;
    int64_t code = write_out(to, to->put.bytes, to->put.used, to->written);
    if (code == SB_OK)
        code = sync_file(to);
    if (code != SB_OK)
        return code;
    to->written += to->put.used;
    to->bytes += to->put.used;
    to->put.used = 0;
    if (to->writer >= 0 && to->written >= to->page_bytes)
        page_end_file(to);
    return SB_OK;
}

void page_store_forget(page_store *to)
{
    to->put.used = 0;
    /* a part of a record may be there, and would look like damage behind shorter ones */
    if (to->writer >= 0 && (ftruncate(to->writer, to->written) != 0 || to->syncs))
        page_end_file(to); /* also if a sync failed: nothing is put behind what may be lost */
}
