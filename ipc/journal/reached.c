/* How far the journal was synced, as its writer notes it now and then: in a file of its own,
 * `reached`, which is not synced.  So it may be behind, and is never ahead: what it names was on
 * the disk before it was written.  With it, the end of the newest segment that is zeroed, cut or
 * gone is told from one that a crash has torn. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "journal/format.h"

#define REACHED_FILE "reached"
#define REACHED_MAGIC UINT64_C(0x6863616572626873) /* shbreach */

typedef struct reached_page {
    uint64_t magic;
    int64_t serial, end;
    uint8_t zeros[36];
    uint32_t crc; /* of all before */
} reached_page;

_Static_assert(sizeof(reached_page) == 64, "within a sector: it is there as a whole, or not");

static uint32_t crc_of(const reached_page *page)
{
    return crc32c(0, page, offsetof(reached_page, crc));
}

void reached_write(const folder *in, const listed *where)
{
    reached_page page = {.magic = REACHED_MAGIC, .serial = where->serial, .end = where->end};
    int file;
    trusted_open(in->file, in->path, REACHED_FILE, O_RDWR | O_CREAT, &in->whose, &file);
    page.crc = crc_of(&page);
    if (file < 0 || pwrite(file, &page, sizeof page, 0) < 0) {
        /* less is noticed then: no reason to stop */
    }
    if (file >= 0)
        close(file);
}

listed reached_read(const folder *in)
{
    reached_page page = {0};
    int file;
    if (trusted_open(in->file, in->path, REACHED_FILE, O_RDONLY, &in->whose, &file) != SB_OK)
        return (listed){0};
    bool is_good = pread(file, &page, sizeof page, 0) == (ssize_t)sizeof page &&
                   page.magic == REACHED_MAGIC && page.crc == crc_of(&page) && page.serial > 0 &&
                   page.end > 0;
    close(file);
    return is_good ? (listed){page.serial, page.end & ~INT64_C(7)} : (listed){0};
}
