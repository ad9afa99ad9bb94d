/* The header of a segment, and the head of a record: what they check by. */

#define _GNU_SOURCE
#include <string.h>

#include "base/base.h"
#include "journal/format.h"

uint32_t header_crc(const journal_header *header)
{
    return crc32c(0, header, offsetof(journal_header, crc));
}

int64_t header_check(const journal_header *header, const char *path, int64_t serial,
                     int64_t file_bytes)
{
    if (header->magic != JOURNAL_MAGIC)
        return fail(SB_JOURNAL_DAMAGED, "%s, offset 0: this is no segment of a journal, or its "
                    "header was overwritten", path);
    if (header->crc != header_crc(header))
        return fail(SB_JOURNAL_DAMAGED, "%s, offset 0: the checksum of its header is wrong", path);
    if (header->version != JOURNAL_VERSION || header->page != JOURNAL_PAGE)
        return fail(SB_OTHER_VERSION, "%s has version %u of the journal's layout, and this is for "
                    "version %u: use the shmbroker that wrote it", path, header->version,
                    JOURNAL_VERSION);
    if (header->serial != serial)
        return fail(SB_JOURNAL_DAMAGED, "%s, offset 0: its header says that it is segment %016llx: "
                    "it was renamed or copied", path, (unsigned long long)header->serial);
    if (header->bytes < 2 * JOURNAL_PAGE || header->bytes > JOURNAL_BYTES_MAX)
        return fail(SB_JOURNAL_DAMAGED, "%s, offset 0: no segment has %lld bytes", path,
                    (long long)header->bytes);
    if (header->bytes > file_bytes)
        return SB_TRUNCATED; /* what is there is good nevertheless */
    return SB_OK;
}

bool node_fits(const uint8_t *node, const uint8_t *other)
{
    static const uint8_t zeros[16];
    return memcmp(node, other, sizeof zeros) == 0 || memcmp(node, zeros, sizeof zeros) == 0 ||
           memcmp(other, zeros, sizeof zeros) == 0;
}

/* The CRC of the body is in the head: so this is of the whole record, at its place. */
uint32_t record_crc(uint32_t seed, int64_t offset, const record_head *head)
{
    struct {
        int64_t offset;
        record_head head;
    } covered = {offset, *head};
    covered.head.crc = 0;
    return crc32c(seed, &covered, sizeof covered);
}
